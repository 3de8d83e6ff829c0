/* WebSockets: the handshake, messages, control frames, backpressure, and every way to end. */
#define EXTRA_ROUTES {HTTP_GET, "/socket", handle_socket},

#include "http/websocket.h"

static void handle_socket(struct http_request *req);

#include "http_fixture.h"

#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define ASK                                                                                        \
	"GET /socket HTTP/1.1\r\n" HOST                                                            \
	"Connection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"                                \
	"Sec-WebSocket-Version: 13\r\n"
#define MESSAGE_MAX 100000

enum {
	CONTINUATION = 0,
	TEXT = 1,
	BINARY = 2,
	CLOSE = 8,
	PING = 9,
	PONG = 10,
	FIN = 0x80,
	UNMASKED = 0x100
};

static struct {
	struct websocket *ws;
	int messages;
	struct buf text; /* "t:hello b:..." */
	size_t last_len;
	int writable;
	int closed;
	unsigned code;
	char reason[128];
	bool echo;
	bool pause_each;
	bool close_at_once;
} socket_seen;

static void take_message(void *arg, enum websocket_kind kind, const char *data, size_t len)
{
	CHECK(arg == &socket_seen);
	socket_seen.messages++;
	socket_seen.last_len = len;
	buf_append_str(&socket_seen.text, kind == WEBSOCKET_TEXT ? "t:" : "b:");
	buf_append(&socket_seen.text, data, len < 64 ? len : 64);
	buf_append_char(&socket_seen.text, ' ');
	if (socket_seen.echo)
		CHECK(websocket_send(socket_seen.ws, kind, data, len) == 0);
	if (socket_seen.pause_each)
		websocket_pause(socket_seen.ws);
	if (socket_seen.close_at_once)
		websocket_close(socket_seen.ws, 4001, "enough");
}

static void note_writable(void *arg)
{
	CHECK(arg == &socket_seen);
	socket_seen.writable++;
}

static void note_closed(void *arg, unsigned code, const char *reason)
{
	CHECK(arg == &socket_seen);
	socket_seen.closed++;
	socket_seen.code = code;
	snprintf(socket_seen.reason, sizeof socket_seen.reason, "%s", reason);
}

static const char *const protocols[] = {"best", "good", NULL};
static const struct websocket_events events = {
	take_message, note_writable, note_closed, MESSAGE_MAX, protocols};

static void handle_socket(struct http_request *req)
{
	seen.handled++;
	http_add_header(req, "X-Extra", "yes");
	if (http_upgrade_websocket(req, &events, &socket_seen, &socket_seen.ws) < 0)
		socket_seen.ws = NULL;
}

/* ---- the client ---- */

static struct buf inbox;

static int open_socket(const struct http_limits *limits)
{
	buf_finish(&socket_seen.text);
	memset(&socket_seen, 0, sizeof socket_seen);
	inbox.len = 0;
	start(limits);
	int fd = dial();
	autoanswer a;
	say(fd, ASK KEY "\r\n");
	hear_to(fd, &a, true);
	CHECK_INT(a.status, 101);
	CHECK_STR(field_of(&a, "Sec-WebSocket-Accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	buf_append(&inbox, beyond.data, beyond.len);
	beyond.len = 0;
	return fd;
}

static void put_frame(struct buf *out, int head, const void *data, size_t len)
{
	static const char mask[] = {1, 2, 3, 4};
	int masked = head & UNMASKED ? 0 : 0x80;
	buf_append_char(out, (char)head);
	if (len < 126) {
		buf_append_char(out, (char)(masked | (int)len));
	} else if (len < 65536) {
		buf_append_char(out, (char)(masked | 126));
	} else {
		buf_append_char(out, (char)(masked | 127));
	}
	for (int shift = len < 126 ? 0 : len < 65536 ? 16 : 64; shift > 0;)
		buf_append_char(out, (char)((uint64_t)len >> (shift -= 8)));
	if (masked)
		buf_append(out, mask, 4);
	for (size_t i = 0; i < len; i++)
		buf_append_char(out, (char)(((const char *)data)[i] ^ (masked ? mask[i % 4] : 0)));
}

static void say_frame(int fd, int head, const void *data, size_t len)
{
	autobuf frame = {0};
	put_frame(&frame, head, data, len);
	say_n(fd, frame.data, frame.len);
}

static void say_text(int fd, const char *text)
{
	say_frame(fd, FIN | TEXT, text, strlen(text));
}

/* The next frame: its first byte; the payload is in *data, for the time being. */
static int hear_frame(int fd, struct buf *data)
{
	int64_t end = clock_monotonic_us() + 5000000;
	for (;;) {
		const unsigned char *p = (unsigned char *)inbox.data;
		size_t header = 2, len = 0;
		if (inbox.len >= 2) {
			CHECK(!(p[1] & 0x80));
			size_t extra = p[1] < 126 ? 0 : p[1] == 126 ? 2 : 8;
			header += extra;
			len = p[1] & 0x7f;
			if (extra && inbox.len >= header) {
				len = 0;
				for (size_t i = 0; i < extra; i++)
					len = len << 8 | p[2 + i];
			}
		}
		if (inbox.len >= 2 && inbox.len >= header && inbox.len - header >= len) {
			int head = p[0];
			data->len = 0;
			buf_append(data, inbox.data + header, len);
			buf_append_char(data, '\0');
			data->len--;
			buf_consume(&inbox, header + len);
			return head;
		}
		CHECK(listen_once(fd, &inbox) <= HEARD_NOTHING && clock_monotonic_us() < end);
	}
}

static void check_close(int fd, unsigned code)
{
	autobuf data = {0};
	int head;
	do
		head = hear_frame(fd, &data);
	while (head != (FIN | CLOSE));
	unsigned heard = data.len < 2
				 ? WEBSOCKET_NO_CODE
				 : (unsigned char)data.data[0] << 8 | (unsigned char)data.data[1];
	CHECK_INT(heard, code);
	autobuf rest = {0};
	CHECK_INT(hear_all(fd, &rest), HEARD_END);
	CHECK_INT(rest.len, 1);
}

static void check_texts(const char *wanted)
{
	buf_append_char(&socket_seen.text, '\0');
	CHECK_STR(socket_seen.text.data, wanted);
	socket_seen.text.len--;
}

/* ---- the handshake ---- */

static void agrees_on_a_protocol(void)
{
	start(&generous);
	static const struct {
		const char *offer, *agreed;
	} offers[] = {{"", NULL}, {"Sec-WebSocket-Protocol: good, best\r\n", "best"},
		{"Sec-WebSocket-Protocol: other\r\nSec-WebSocket-Protocol: good\r\n", "good"},
		{"Sec-WebSocket-Protocol: other\r\n", NULL}};
	for (size_t i = 0; i < ARRAY_LEN(offers); i++) {
		autoclose int fd = dial();
		autobuf request = {0};
		autoanswer a;
		buf_append_str(&request, ASK KEY);
		buf_append_str(&request, offers[i].offer);
		buf_append_str(&request, "\r\n");
		say_n(fd, request.data, request.len);
		hear_to(fd, &a, true);
		CHECK_INT(a.status, 101);
		CHECK_STR(field_of(&a, "Connection"), "Upgrade");
		CHECK_STR(field_of(&a, "Upgrade"), "websocket");
		CHECK_STR(field_of(&a, "X-Extra"), "yes");
		CHECK(!field_of(&a, "Sec-WebSocket-Extensions"));
		if (offers[i].agreed) {
			CHECK_STR(field_of(&a, "Sec-WebSocket-Protocol"), offers[i].agreed);
			CHECK_STR(websocket_protocol(socket_seen.ws), offers[i].agreed);
		} else {
			CHECK(!field_of(&a, "Sec-WebSocket-Protocol"));
			CHECK(!websocket_protocol(socket_seen.ws));
		}
	}
	stop();
}

static void refuses_what_is_no_handshake(void)
{
	static const struct {
		const char *request;
		int status;
	} refused[] = {
		{"GET /socket HTTP/1.1\r\n" HOST "\r\n", 426},
		{"GET /socket HTTP/1.1\r\n" HOST
		 "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" KEY "\r\n",
			426},
		{"GET /socket HTTP/1.1\r\n" HOST
		 "Connection: upgrade\r\nSec-WebSocket-Version: 13\r\n" KEY "\r\n",
			426},
		{"GET /socket HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: h2c\r\n"
		 "Sec-WebSocket-Version: 13\r\n" KEY "\r\n",
			426},
		{"GET /socket HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: websocket\r\n"
		 "Sec-WebSocket-Version: 8\r\n" KEY "\r\n",
			426},
		{"GET /socket HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: websocket\r\n" KEY
		 "\r\n",
			426},
		{ASK "\r\n", 400},
		{ASK KEY KEY "\r\n", 400},
		{ASK "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ\r\n\r\n", 400},
		{ASK "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZS4=\r\n\r\n", 400},
		{ASK "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ!!\r\n\r\n", 400},
		{ASK "Sec-WebSocket-Key: \r\n\r\n", 400},
	};
	start(&generous);
	autoclose int fd = dial();
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		autoanswer a;
		say(fd, refused[i].request);
		hear(fd, &a);
		if (a.status != refused[i].status)
			check_fail(__FILE__, __LINE__, refused[i].request, a.text.data, "refused");
		CHECK(!socket_seen.ws);
		if (a.status == 426)
			CHECK_STR(field_of(&a, "Upgrade"), "websocket");
	}
	/* HTTP/1.0 cannot change. */
	ANSWERED_AND_CLOSED("GET /socket HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
			    "Sec-WebSocket-Version: 13\r\n" KEY "\r\n",
		426);
	stop();
}

/* ---- messages ---- */

static void carries_messages_both_ways(void)
{
	autoclose int fd = open_socket(&generous);
	autobuf data = {0};
	autofree char *large = malloc(MESSAGE_MAX);
	memset(large, 'x', MESSAGE_MAX);
	socket_seen.echo = true;
	say_text(fd, "hello");
	CHECK_INT(hear_frame(fd, &data), FIN | TEXT);
	CHECK_STR(data.data, "hello");
	say_frame(fd, FIN | BINARY, "\0\1", 2);
	CHECK_INT(hear_frame(fd, &data), FIN | BINARY);
	CHECK(data.len == 2 && memcmp(data.data, "\0\1", 2) == 0);
	say_text(fd, "");
	CHECK_INT(hear_frame(fd, &data), FIN | TEXT);
	CHECK_INT(data.len, 0);
	for (size_t len = 125; len <= MESSAGE_MAX; len = len * 3 + 1) {
		say_frame(fd, FIN | BINARY, large, len);
		CHECK_INT(hear_frame(fd, &data), FIN | BINARY);
		CHECK_INT(data.len, len);
		CHECK(memcmp(data.data, large, len) == 0);
	}
	say_frame(fd, FIN | BINARY, large, MESSAGE_MAX);
	CHECK_INT(hear_frame(fd, &data), FIN | BINARY);
	CHECK_INT(data.len, MESSAGE_MAX);
	stop();
	CHECK_INT(socket_seen.closed, 1);
}

static void takes_frames_however_they_are_cut(void)
{
	autoclose int fd = open_socket(&generous);
	autobuf frames = {0};
	put_frame(&frames, TEXT, "he", 2);
	put_frame(&frames, FIN | PING, "p", 1);
	put_frame(&frames, CONTINUATION, "", 0);
	put_frame(&frames, FIN | CONTINUATION, "llo", 3);
	put_frame(&frames, FIN | TEXT, "world", 5);
	for (size_t i = 0; i < frames.len; i++)
		say_n(fd, frames.data + i, 1);
	turn_until(&socket_seen.messages, 2);
	say_n(fd, frames.data, frames.len);
	turn_until(&socket_seen.messages, 4);
	check_texts("t:hello t:world t:hello t:world ");
	stop();
}

/* Frames in the packet of the handshake. */
static void takes_frames_that_came_with_the_handshake(void)
{
	buf_finish(&socket_seen.text);
	memset(&socket_seen, 0, sizeof socket_seen);
	start(&generous);
	autoclose int fd = dial();
	autobuf request = {0};
	buf_append_str(&request, ASK KEY "\r\n");
	put_frame(&request, FIN | TEXT, "early", 5);
	say_n(fd, request.data, request.len);
	turn_until(&socket_seen.messages, 1);
	check_texts("t:early ");
	stop();
}

static void answers_pings(void)
{
	autoclose int fd = open_socket(&generous);
	autobuf data = {0};
	say_frame(fd, FIN | PING, "are you there", 13);
	CHECK_INT(hear_frame(fd, &data), FIN | PONG);
	CHECK_STR(data.data, "are you there");
	say_frame(fd, FIN | PONG, "unasked", 7);
	say_text(fd, "on");
	turn_until(&socket_seen.messages, 1);
	stop();
}

static const struct http_limits watchful = {
	.connections = 100,
	.refused = 64,
	.head_timeout_ms = 10000,
	.body_timeout_ms = 10000,
	.idle_timeout_ms = 10000,
	.first_timeout_ms = 10000,
	.websocket_ping_ms = 60,
};

static void keeps_a_quiet_client_that_answers_pings(void)
{
	autoclose int fd = open_socket(&watchful);
	autobuf data = {0};
	for (int i = 0; i < 6; i++) {
		CHECK_INT(hear_frame(fd, &data), FIN | PING);
		say_frame(fd, FIN | PONG, data.data, data.len);
	}
	CHECK_INT(socket_seen.closed, 0);
	stop();
}

static void gives_up_a_client_that_does_not_answer_pings(void)
{
	autoclose int fd = open_socket(&watchful);
	CHECK(fd >= 0);
	turn_until(&socket_seen.closed, 1);
	CHECK_INT(socket_seen.code, WEBSOCKET_ABNORMAL);
	turn_until_gone();
	stop();
	CHECK_INT(socket_seen.closed, 1);
}

/* ---- backpressure ---- */

static void stops_reading_from_somebody_who_does_not_read_pongs(void)
{
	enum {
		SIZE = 64 << 20
	};
	autoclose int fd = open_socket(&generous);
	autobuf pings = {0};
	char payload[125] = {0};
	for (int i = 0; i < 2000; i++)
		put_frame(&pings, FIN | PING, payload, sizeof payload);
	size_t sent = 0, at = 0;
	for (int quiet = 0; quiet < 50 && sent < SIZE;) {
		ssize_t n = send(fd, pings.data + at, pings.len - at, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		at = n > 0 ? (at + (size_t)n) % pings.len : at;
		quiet = n > 0 ? 0 : quiet + 1;
		turn_for(1);
	}
	CHECK(sent < SIZE);
	CHECK(websocket_queued(socket_seen.ws) < 2 << 20);
	stop();
}

static void bounds_what_is_queued_for_the_client(void)
{
	autoclose int fd = open_socket(&generous);
	autobuf data = {0};
	autofree char *chunk = calloc(1, 65536);
	int sent = 0;
	/* The kernel takes some megabytes, then the queue fills. */
	while (sent < 1000 && websocket_send(socket_seen.ws, WEBSOCKET_BINARY, chunk, 65536) == 0) {
		sent++;
		turn();
	}
	CHECK(sent > 16 && sent < 1000);
	CHECK(websocket_queued(socket_seen.ws) >= WEBSOCKET_QUEUE_MAX);
	CHECK(websocket_queued(socket_seen.ws) <= WEBSOCKET_QUEUE_MAX + 65536 + 10);
	CHECK_INT(websocket_send(socket_seen.ws, WEBSOCKET_TEXT, "x", 1), -EAGAIN);
	int before = socket_seen.writable;
	for (int i = 0; i < sent; i++) {
		CHECK_INT(hear_frame(fd, &data), FIN | BINARY);
		CHECK_INT(data.len, 65536);
	}
	turn_until(&socket_seen.writable, before + 1);
	CHECK_INT(websocket_queued(socket_seen.ws), 0);
	CHECK_INT(websocket_send(socket_seen.ws, WEBSOCKET_TEXT, "x", 1), 0);
	CHECK_INT(hear_frame(fd, &data), FIN | TEXT);
	stop();
}

static void tells_when_it_is_writable_from_the_loop(void)
{
	autoclose int fd = open_socket(&generous);
	CHECK(fd >= 0);
	turn_for(5);
	CHECK_INT(socket_seen.writable, 0);
	CHECK_INT(websocket_send(socket_seen.ws, WEBSOCKET_TEXT, "x", 1), 0);
	CHECK_INT(socket_seen.writable, 0);
	turn_until(&socket_seen.writable, 1);
	turn_for(5);
	CHECK_INT(socket_seen.writable, 1);
	stop();
}

static void stops_reading_while_it_is_paused(void)
{
	enum {
		COUNT = 2000,
		SIZE = 10000
	};
	autoclose int fd = open_socket(&generous);
	autofree char *text = malloc(SIZE);
	autobuf frame = {0};
	memset(text, 'x', SIZE);
	put_frame(&frame, FIN | TEXT, text, SIZE);
	socket_seen.pause_each = true;
	size_t total = frame.len * COUNT, sent = 0;
	for (int quiet = 0; quiet < 50 && sent < total;) {
		size_t at = sent % frame.len;
		ssize_t n = send(fd, frame.data + at, frame.len - at, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		quiet = n > 0 ? 0 : quiet + 1;
		if (n <= 0)
			turn_for(1);
		else
			turn();
	}
	CHECK(sent < total);
	CHECK_INT(socket_seen.messages, 1);
	websocket_resume(socket_seen.ws);
	CHECK_INT(socket_seen.messages, 1);
	turn_until(&socket_seen.messages, 2);
	socket_seen.pause_each = false;
	websocket_resume(socket_seen.ws);
	while (sent < total) {
		size_t at = sent % frame.len;
		say_n(fd, frame.data + at, frame.len - at);
		sent += frame.len - at;
	}
	turn_until(&socket_seen.messages, COUNT);
	CHECK_INT(socket_seen.last_len, SIZE);
	stop();
}

/* ---- the end ---- */

static void answers_the_close_of_the_client(void)
{
	int fd = open_socket(&generous);
	say_frame(fd, FIN | CLOSE,
		"\x0f\xa1"
		"bye",
		5);
	check_close(fd, 4001);
	close(fd);
	CHECK_INT(socket_seen.closed, 1);
	CHECK_INT(socket_seen.code, 4001);
	CHECK_STR(socket_seen.reason, "bye");
	stop();
	fd = open_socket(&generous);
	say_frame(fd, FIN | CLOSE, NULL, 0);
	check_close(fd, WEBSOCKET_NO_CODE);
	close(fd);
	CHECK_INT(socket_seen.code, WEBSOCKET_NO_CODE);
	stop();
	CHECK_INT(socket_seen.closed, 1);
}

static void closes_after_what_was_sent(void)
{
	autoclose int fd = open_socket(&generous);
	autobuf data = {0};
	autofree char *chunk = calloc(1, 900000);
	CHECK_INT(websocket_send(socket_seen.ws, WEBSOCKET_BINARY, chunk, 900000), 0);
	CHECK_INT(websocket_send(socket_seen.ws, WEBSOCKET_TEXT, "last", 4), 0);
	websocket_close(socket_seen.ws, WEBSOCKET_NORMAL, "done");
	CHECK_INT(hear_frame(fd, &data), FIN | BINARY);
	CHECK_INT(hear_frame(fd, &data), FIN | TEXT);
	CHECK_STR(data.data, "last");
	CHECK_INT(hear_frame(fd, &data), FIN | CLOSE);
	CHECK(data.len == 6 && memcmp(data.data,
				       "\x03\xe8"
				       "done",
				       6) == 0);
	/* Whatever the client still says is of no interest; its close ends it. */
	say_text(fd, "wait");
	say_frame(fd, FIN | CLOSE, "\x03\xe8", 2);
	autobuf rest = {0};
	CHECK_INT(hear_all(fd, &rest), HEARD_END);
	stop();
	CHECK_INT(socket_seen.messages, 0);
	CHECK_INT(socket_seen.closed, 0);
}

static void closes_from_inside_of_a_message(void)
{
	autoclose int fd = open_socket(&generous);
	autobuf frames = {0};
	socket_seen.close_at_once = true;
	put_frame(&frames, FIN | TEXT, "a", 1);
	put_frame(&frames, FIN | TEXT, "b", 1);
	put_frame(&frames, FIN | CLOSE, "\x03\xe8", 2);
	say_n(fd, frames.data, frames.len);
	check_close(fd, 4001);
	stop();
	check_texts("t:a ");
	CHECK_INT(socket_seen.closed, 0);
}

static void does_not_wait_forever_for_the_close_of_the_client(void)
{
	autoclose int fd = open_socket(&generous);
	websocket_close(socket_seen.ws, WEBSOCKET_GOING_AWAY, NULL);
	check_close(fd, WEBSOCKET_GOING_AWAY);
	stop();
	CHECK_INT(socket_seen.closed, 0);
}

static void tells_once_that_the_client_vanished(void)
{
	const struct linger reset = {1, 0};
	for (int way = 0; way < 3; way++) {
		int fd = open_socket(&generous);
		say_text(fd, "x");
		turn_until(&socket_seen.messages, 1);
		if (way == 0)
			shutdown(fd, SHUT_WR);
		if (way == 1)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		if (way > 0)
			close(fd);
		turn_until(&socket_seen.closed, 1);
		CHECK_INT(socket_seen.code, WEBSOCKET_ABNORMAL);
		if (way == 0)
			close(fd);
		turn_until_gone();
		stop();
		CHECK_INT(socket_seen.closed, 1);
	}
}

static void ends_when_the_client_breaks_the_rules(void)
{
	autofree char *large = calloc(1, MESSAGE_MAX + 1);
	const struct {
		const char *what;
		int first;
		int head;
		const void *data;
		size_t len;
		unsigned told, sent;
	} cases[] = {
		{"unmasked", -1, FIN | TEXT | UNMASKED, "x", 1, 1002, 1002},
		{"too long", -1, FIN | BINARY, large, MESSAGE_MAX + 1, 1009, 1009},
		{"not UTF-8", -1, FIN | TEXT, "\xff", 1, 1007, 1007},
		{"half a character", -1, FIN | TEXT, "\xc3", 1, 1007, 1007},
		{"reserved bit", -1, FIN | 0x40 | TEXT, "x", 1, 1002, 1002},
		{"unknown opcode", -1, FIN | 3, "x", 1, 1002, 1002},
		{"continuation of nothing", -1, FIN | CONTINUATION, "x", 1, 1002, 1002},
		{"a message within a message", TEXT, FIN | TEXT, "x", 1, 1002, 1002},
		{"a fragmented ping", -1, PING, "x", 1, 1002, 1005},
		{"a long ping", -1, FIN | PING, large, 126, 1002, 1005},
		{"a close code of nobody", -1, FIN | CLOSE, "\x03\xee", 2, 1002, 1002},
		{"a close reason that is not UTF-8", -1, FIN | CLOSE, "\x03\xe8\xff", 3, 1007,
			1007},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		autoclose int fd = open_socket(&generous);
		if (cases[i].first >= 0)
			say_frame(fd, cases[i].first, "y", 1);
		say_frame(fd, cases[i].head, cases[i].data, cases[i].len);
		check_close(fd, cases[i].sent);
		if (socket_seen.code != cases[i].told || socket_seen.messages)
			check_fail(__FILE__, __LINE__, cases[i].what, "told otherwise", "told");
		stop();
		CHECK_INT(socket_seen.closed, 1);
	}
}

static void counts_fragments_together(void)
{
	autoclose int fd = open_socket(&generous);
	autofree char *half = calloc(1, MESSAGE_MAX);
	say_frame(fd, BINARY, half, MESSAGE_MAX / 2);
	say_frame(fd, CONTINUATION, half, MESSAGE_MAX / 2);
	say_frame(fd, FIN | CONTINUATION, NULL, 0);
	turn_until(&socket_seen.messages, 1);
	CHECK_INT(socket_seen.last_len, MESSAGE_MAX);
	say_frame(fd, BINARY, half, MESSAGE_MAX / 2);
	say_frame(fd, CONTINUATION, half, MESSAGE_MAX / 2);
	say_frame(fd, FIN | CONTINUATION, "x", 1);
	check_close(fd, WEBSOCKET_TOO_BIG);
	CHECK_INT(socket_seen.messages, 1);
	CHECK_INT(socket_seen.code, WEBSOCKET_TOO_BIG);
	stop();
}

static void ends_with_the_server(void)
{
	autoclose int fd = open_socket(&generous);
	CHECK(fd >= 0);
	stop();
	CHECK_INT(socket_seen.closed, 1);
	CHECK_INT(socket_seen.code, WEBSOCKET_ABNORMAL);
}

static const struct check_test tests[] = {
	TEST(agrees_on_a_protocol),
	TEST(refuses_what_is_no_handshake),
	TEST(carries_messages_both_ways),
	TEST(takes_frames_however_they_are_cut),
	TEST(takes_frames_that_came_with_the_handshake),
	TEST(answers_pings),
	TEST(keeps_a_quiet_client_that_answers_pings),
	TEST(gives_up_a_client_that_does_not_answer_pings),
	TEST(stops_reading_from_somebody_who_does_not_read_pongs),
	TEST(bounds_what_is_queued_for_the_client),
	TEST(tells_when_it_is_writable_from_the_loop),
	TEST(stops_reading_while_it_is_paused),
	TEST(answers_the_close_of_the_client),
	TEST(closes_after_what_was_sent),
	TEST(closes_from_inside_of_a_message),
	TEST(does_not_wait_forever_for_the_close_of_the_client),
	TEST(tells_once_that_the_client_vanished),
	TEST(ends_when_the_client_breaks_the_rules),
	TEST(counts_fragments_together),
	TEST(ends_with_the_server),
};

int main(void)
{
	int failed = run_http_tests(tests, ARRAY_LEN(tests));
	buf_finish(&inbox);
	buf_finish(&socket_seen.text);
	return failed;
}
