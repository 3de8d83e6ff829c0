/* Request bodies as streams: framing, backpressure, early answers, and every way to fail. */
#include "http_fixture.h"

#define PUT          "PUT /upload HTTP/1.1\r\n" HOST
#define CHUNKED      "Transfer-Encoding: chunked\r\n\r\n"
#define LENGTH(n)    "Content-Length: " #n "\r\n\r\n"
#define CHECK_GOT(s) check_got(__LINE__, s)

static void check_got(int line, const char *wanted)
{
	buf_append_char(&seen.upload, '\0');
	check_str(__FILE__, line, "the upload", seen.upload.data, wanted);
}

static void takes_a_body_of_known_length(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, PUT LENGTH(11) "hello");
	turn_until(&seen.pieces, 1);
	CHECK_INT(http_content_length(seen.pending), 11);
	CHECK_INT(seen.ended, 0);
	/* What follows is the next request. */
	say(fd, " world" NEXT);
	hear(fd, &a);
	CHECK_STR(a.body, "11");
	CHECK_INT(seen.ended, 1);
	CHECK_GOT("hello world");
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	stop();
	CHECK_INT(seen.sink_aborted, 0);
}

static void takes_a_body_in_chunks_however_they_are_cut(void)
{
	static const char request[] = PUT CHUNKED "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n" NEXT;
	for (size_t cut = 1; cut < sizeof request; cut += 3) {
		start(&generous);
		autoclose int fd = dial();
		autoanswer a, b;
		say_n(fd, request, cut);
		turn_for(1);
		say_n(fd, request + cut, sizeof request - 1 - cut);
		hear(fd, &a);
		hear(fd, &b);
		CHECK_STR(a.body, "11");
		CHECK_STR(b.body, "hello");
		CHECK_GOT("hello world");
		stop();
	}
}

static void does_not_know_the_length_of_chunks(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	seen.take_later = true;
	say(fd, PUT CHUNKED);
	turn_until(&seen.handled, 1);
	CHECK_INT(http_content_length(seen.pending), -1);
	http_body_stream(seen.pending, &upload_sink);
	say(fd, "0\r\n\r\n");
	hear(fd, &a);
	CHECK_STR(a.body, "0");
	stop();
}

static void tells_the_end_of_an_empty_body(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, PUT "\r\n");
	hear(fd, &a);
	CHECK_STR(a.body, "0");
	seen.take_later = true;
	seen.ended = 0;
	say(fd, PUT LENGTH(0));
	turn_until(&seen.handled, 2);
	CHECK_INT(http_content_length(seen.pending), 0);
	http_body_stream(seen.pending, &upload_sink);
	/* From the loop, not inside of the call. */
	CHECK_INT(seen.ended, 0);
	hear(fd, &b);
	CHECK_STR(b.body, "0");
	CHECK_INT(seen.ended, 1);
	stop();
}

static void asks_for_the_body_only_when_the_handler_wants_it(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.take_later = true;
	say(fd, PUT "Expect: 100-continue\r\n" LENGTH(3));
	turn_until(&seen.handled, 1);
	turn_for(20);
	char byte;
	CHECK(recv(fd, &byte, 1, MSG_PEEK) < 0);
	http_body_stream(seen.pending, &upload_sink);
	hear(fd, &a);
	CHECK_INT(a.status, 100);
	say(fd, "abc");
	hear(fd, &b);
	CHECK_STR(b.body, "3");
	stop();
}

static void answers_without_a_100_when_the_handler_does_not_want_the_body(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.take_later = true;
	say(fd, PUT "Expect: 100-continue\r\n" LENGTH(3));
	turn_until(&seen.handled, 1);
	respond_text(seen.pending, 409, "no");
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strncmp(in.data, "HTTP/1.1 409 ", 13) == 0);
	CHECK(strstr(in.data, "\r\nConnection: close\r\n"));
	CHECK(!strstr(in.data, "100 Continue"));
	stop();
}

/* As much as the client wants to send, in pieces; `sent` says how much went. */
static size_t push(int fd, size_t size, int patience)
{
	autofree char *data = calloc(1, 65536);
	size_t sent = 0;
	for (int quiet = 0; quiet < patience && sent < size;) {
		size_t n = size - sent < 65536 ? size - sent : 65536;
		ssize_t r = send(fd, data, n, MSG_NOSIGNAL);
		sent += r > 0 ? (size_t)r : 0;
		quiet = r > 0 ? 0 : quiet + 1;
		if (r > 0)
			turn();
		else
			turn_for(1);
	}
	return sent;
}

static void stops_reading_while_the_sink_is_paused(void)
{
	enum {
		SIZE = 64 << 20
	};
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	seen.keep_nothing = seen.pause_each = true;
	say(fd, PUT "Content-Length: 67108864\r\n\r\n");
	size_t sent = push(fd, SIZE, 50);
	/* What the kernel buffers went out, and no more; one piece was taken. */
	CHECK(sent < SIZE / 2);
	CHECK_INT(seen.pieces, 1);
	CHECK(seen.largest_piece <= 262144);
	seen.pause_each = false;
	http_body_resume(seen.pending);
	CHECK_INT(seen.pieces, 1);
	CHECK_INT(push(fd, SIZE - sent, 1000), SIZE - sent);
	hear(fd, &a);
	CHECK_STR(a.body, "67108864");
	CHECK(seen.largest_piece <= 262144);
	stop();
}

static void stops_reading_before_the_handler_takes_the_body(void)
{
	enum {
		SIZE = 64 << 20
	};
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	seen.keep_nothing = seen.take_later = true;
	say(fd, PUT "Content-Length: 67108864\r\n\r\n");
	size_t sent = push(fd, SIZE, 50);
	CHECK(sent < SIZE / 2);
	http_body_stream(seen.pending, &upload_sink);
	CHECK_INT(push(fd, SIZE - sent, 1000), SIZE - sent);
	hear(fd, &a);
	CHECK_STR(a.body, "67108864");
	stop();
}

/* Many tiny chunks with a pause after each: the end comes, in order, and the next request is found.
 */
static void pauses_at_every_piece(void)
{
	enum {
		CHUNKS = 3000
	};
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	autobuf request = {0};
	buf_append_str(&request, PUT CHUNKED);
	for (int i = 0; i < CHUNKS; i++)
		buf_printf(&request, "1\r\n%c\r\n", 'a' + i % 26);
	buf_append_str(&request, "0\r\n\r\n" NEXT);
	seen.pause_each = true;
	say_n(fd, request.data, request.len);
	for (int i = 1; i <= CHUNKS; i++) {
		turn_until(&seen.pieces, i);
		turn();
		CHECK_INT(seen.pieces, i);
		CHECK_INT(seen.ended, 0);
		http_body_resume(seen.pending);
	}
	hear(fd, &a);
	CHECK_STR(a.body, "3000");
	for (int i = 0; i < CHUNKS; i++)
		CHECK(seen.upload.data[i] == 'a' + i % 26);
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	stop();
}

static void gives_back_what_the_sink_does_not_take(void)
{
	static const char *const requests[] = {
		PUT LENGTH(11) "hello world" NEXT,
		PUT CHUNKED "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n" NEXT,
	};
	for (int paused = 0; paused < 2; paused++) {
		for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
			start(&generous);
			autoclose int fd = dial();
			autoanswer a, b;
			seen.take_at_most = 2;
			seen.pause_each = paused;
			say(fd, requests[i]);
			while (seen.pieces == 0)
				turn();
			while (paused && seen.uploaded < 11) {
				int pieces = seen.pieces;
				turn_for(1);
				CHECK_INT(seen.pieces, pieces);
				http_body_resume(seen.pending);
				turn_until(&seen.pieces, pieces + 1);
			}
			if (paused)
				http_body_resume(seen.pending);
			hear(fd, &a);
			CHECK_STR(a.body, "11");
			CHECK_GOT("hello world");
			hear(fd, &b);
			CHECK_STR(b.body, "hello");
			stop();
		}
	}
}

/* The bytes that an early answer leaves unread must never be taken for a request. */
static void closes_when_an_answer_leaves_bytes_unread(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.answer_at_once = true;
	seen.take_at_most = 2;
	say(fd, PUT "Content-Length: 38\r\n\r\nxx" NEXT);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strncmp(in.data, "HTTP/1.1 409 ", 13) == 0);
	CHECK(strstr(in.data, "\r\nConnection: close\r\n"));
	CHECK(!strstr(in.data + 9, "HTTP/1.1"));
	CHECK_INT(seen.handled, 1);
	stop();
}

static void answers_before_the_body_has_come(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.answer_at_once = true;
	/* The client goes on sending for a while, and still sees the answer. */
	say(fd, PUT "Content-Length: 67108864\r\n\r\n");
	CHECK_INT(push(fd, 32 << 20, 1000), 32 << 20);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strncmp(in.data, "HTTP/1.1 409 ", 13) == 0);
	CHECK(strstr(in.data, "\r\nConnection: close\r\n"));
	CHECK_INT(seen.pieces, 1);
	stop();
	CHECK_INT(seen.ended + seen.sink_aborted, 0);
}

/* A large early answer and a client that reads only after it has sent everything. */
static void reads_on_while_an_early_answer_waits_for_the_client(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.take_later = true;
	say(fd, PUT "Content-Length: 67108864\r\n\r\n");
	turn_until(&seen.handled, 1);
	handle_big(seen.pending);
	CHECK_INT(push(fd, 64 << 20, 1000), 64 << 20);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(in.len > BIG);
	stop();
}

static void keeps_the_connection_when_the_whole_body_was_there(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.answer_at_once = true;
	say(fd, PUT LENGTH(3) "abc" NEXT);
	hear(fd, &a);
	CHECK_INT(a.status, 409);
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	stop();
	CHECK_INT(seen.ended, 0);
}

static void tells_once_that_the_client_vanished(void)
{
	enum {
		HALF_CLOSE,
		RESET,
		CLOSE
	};
	const struct linger reset = {1, 0};
	for (int way = HALF_CLOSE; way <= CLOSE; way++) {
		start(&generous);
		int fd = dial();
		say(fd, PUT LENGTH(10) "abc");
		turn_until(&seen.pieces, 1);
		if (way == HALF_CLOSE)
			shutdown(fd, SHUT_WR);
		else if (way == RESET)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		if (way != HALF_CLOSE)
			close(fd);
		turn_until(&seen.sink_aborted, 1);
		turn_until_gone();
		if (way == HALF_CLOSE)
			close(fd);
		stop();
		CHECK_INT(seen.sink_aborted, 1);
	}
}

static void refuses_what_passes_the_limit(void)
{
	start(&generous);
	ANSWERED_AND_CLOSED("PUT /upload/small HTTP/1.1\r\n" HOST LENGTH(11) "hello world", 413);
	CHECK_INT(seen.handled, 0);
	ANSWERED_AND_CLOSED(
		"PUT /upload/small HTTP/1.1\r\n" HOST CHUNKED "5\r\nhello\r\n6\r\n", 413);
	CHECK_INT(seen.uploaded, 5);
	CHECK_INT(seen.sink_aborted, 1);
	/* Beyond what any length can be. */
	ANSWERED_AND_CLOSED(PUT "Content-Length: 9223372036854775808\r\n\r\n", 413);
	CHECK_INT(seen.handled, 1);
	stop();
}

static void refuses_malformed_chunks(void)
{
	static const char *const tails[] = {"0\r\nX-Trailer: a\r\n\r\n", "x\r\n",
		"3;a=b\r\nabc\r\n", "3\r\nabcd\r\n", "1000000000000000\r\n", "\r\n"};
	for (size_t i = 0; i < ARRAY_LEN(tails); i++) {
		start(&generous);
		autobuf request = {0};
		buf_append_str(&request, PUT CHUNKED "2\r\nok\r\n");
		buf_append_str(&request, tails[i]);
		answered_and_closed(request.data, request.len, 400);
		CHECK_INT(seen.handled, 1);
		CHECK_INT(seen.sink_aborted, 1);
		CHECK_INT(seen.ended, 0);
		stop();
	}
}

static void answers_408_to_a_body_that_stalls(void)
{
	start(&hasty);
	ANSWERED_AND_CLOSED(PUT LENGTH(10) "abc", 408);
	CHECK_INT(seen.sink_aborted, 1);
	stop();
}

static void gives_a_paused_client_all_the_time(void)
{
	start(&hasty);
	autoclose int fd = dial();
	autoanswer a;
	seen.pause_each = true;
	say(fd, PUT LENGTH(6) "abc");
	turn_for(500);
	CHECK_INT(seen.pieces, 1);
	http_body_resume(seen.pending);
	turn();
	say(fd, "def");
	turn_until(&seen.pieces, 2);
	turn_for(500);
	CHECK_INT(seen.ended, 0);
	http_body_resume(seen.pending);
	hear(fd, &a);
	CHECK_STR(a.body, "6");
	stop();
}

static void streams_an_answer_while_the_body_comes(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	say(fd, "POST /mirror HTTP/1.1\r\n" HOST CHUNKED "3\r\nabc\r\n");
	while (!in.data || !memmem(in.data, in.len, "3\r\nabc\r\n", 8))
		CHECK(listen_once(fd, &in) <= HEARD_NOTHING);
	CHECK_INT(seen.ended, 0);
	say(fd, "2\r\nde\r\n0\r\n\r\n");
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strstr(in.data, "\r\nConnection: close\r\n"));
	CHECK(strstr(in.data, "\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"));
	CHECK_INT(seen.ended, 1);
	stop();
	CHECK_INT(seen.stopped + seen.sink_aborted, 0);
}

static void stops_the_answer_when_the_client_vanishes_while_both_stream(void)
{
	start(&generous);
	int fd = dial();
	say(fd, "POST /mirror HTTP/1.1\r\n" HOST CHUNKED "3\r\nabc\r\n");
	turn_for(20);
	close(fd);
	turn_until(&seen.stopped, 1);
	stop();
	CHECK_INT(seen.stopped, 1);
	CHECK_INT(seen.sink_aborted, 0);
}

static void tells_a_sink_that_comes_after_the_client_left(void)
{
	start(&generous);
	int fd = dial();
	seen.take_later = true;
	say(fd, PUT "\r\n");
	turn_until(&seen.handled, 1);
	close(fd);
	turn_for(5);
	http_body_stream(seen.pending, &upload_sink);
	CHECK_INT(seen.sink_aborted, 0);
	turn_until(&seen.sink_aborted, 1);
	stop();
	CHECK_INT(seen.ended, 0);
}

static void aborts_a_paused_sink_when_the_server_closes(void)
{
	start(&generous);
	autoclose int fd = dial();
	seen.pause_each = true;
	say(fd, PUT LENGTH(10) "abc");
	turn_until(&seen.pieces, 1);
	stop();
	CHECK_INT(seen.sink_aborted, 1);
}

int main(void)
{
	static const struct check_test tests[] = {
		TEST(takes_a_body_of_known_length),
		TEST(takes_a_body_in_chunks_however_they_are_cut),
		TEST(does_not_know_the_length_of_chunks),
		TEST(tells_the_end_of_an_empty_body),
		TEST(asks_for_the_body_only_when_the_handler_wants_it),
		TEST(answers_without_a_100_when_the_handler_does_not_want_the_body),
		TEST(stops_reading_while_the_sink_is_paused),
		TEST(stops_reading_before_the_handler_takes_the_body),
		TEST(pauses_at_every_piece),
		TEST(gives_back_what_the_sink_does_not_take),
		TEST(closes_when_an_answer_leaves_bytes_unread),
		TEST(answers_before_the_body_has_come),
		TEST(reads_on_while_an_early_answer_waits_for_the_client),
		TEST(keeps_the_connection_when_the_whole_body_was_there),
		TEST(tells_once_that_the_client_vanished),
		TEST(refuses_what_passes_the_limit),
		TEST(refuses_malformed_chunks),
		TEST(answers_408_to_a_body_that_stalls),
		TEST(gives_a_paused_client_all_the_time),
		TEST(streams_an_answer_while_the_body_comes),
		TEST(stops_the_answer_when_the_client_vanishes_while_both_stream),
		TEST(tells_a_sink_that_comes_after_the_client_left),
		TEST(aborts_a_paused_sink_when_the_server_closes),
	};
	return run_http_tests(tests, ARRAY_LEN(tests));
}
