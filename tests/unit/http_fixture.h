/*
 * A server over real loopback sockets for the tests, and a client that speaks raw bytes. Both share
 * one thread: whenever the client waits, it lets the server's loop turn.
 */
#pragma once

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "check.h"
#include "http/http.h"

#define HOST "Host: x\r\n"
#define NEXT "GET /hello HTTP/1.1\r\n" HOST "\r\n"
#define BIG  (8 << 20)

/* ---- the server under test ---- */

static struct {
	uv_loop_t loop;
	struct http_server *server;
	int listen_fd;
	struct sockaddr_in address;
	bool closing, closed;
} fixture;

/* What the handlers leave for the tests to see. */
static struct {
	struct http_request *pending;
	int handled;
	int admitted;
	int aborted;
	int stopped;
	int proceeded;
	int chunks_left; /* that the generator still has to write; -1: endless */
	size_t chunk_size;
	bool write_later; /* the generator leaves writing to the test */
	bool abort_stream;
	uint64_t keepalive_ms;
	/* about a body that is streamed: */
	struct buf upload;
	uint64_t uploaded;
	size_t largest_piece;
	int pieces;
	int ended;
	int sink_aborted;
	bool keep_nothing;   /* count its bytes only */
	bool pause_each;     /* pause at every piece */
	bool take_later;     /* leave http_body_stream to the test */
	bool answer_at_once; /* 409 at the first piece */
	size_t take_at_most; /* of each piece, if not 0; the rest is given back */
} seen;

static inline void on_closed(void *arg)
{
	*(bool *)arg = true;
}

static inline void begin_close(uint64_t grace_ms)
{
	fixture.closing = true;
	http_server_close(fixture.server, grace_ms, on_closed, &fixture.closed);
}

static inline void respond_text(struct http_request *req, int status, const char *text)
{
	struct buf body = {0};
	buf_append_str(&body, text);
	http_respond(req, status, "text/plain", &body);
	CHECK(!body.data);
}

static inline void handle_hello(struct http_request *req)
{
	seen.handled++;
	respond_text(req, 200, "hello");
}

static inline void handle_echo(struct http_request *req)
{
	size_t len;
	const char *data = http_body(req, &len);
	struct buf body = {0};
	buf_append(&body, data, len);
	seen.handled++;
	http_respond(req, 200, "application/octet-stream", &body);
}

static inline void handle_describe(struct http_request *req)
{
	struct buf body = {0};
	const char *query = http_query(req, "q"), *header = http_header(req, "x-test");
	char *memory = http_alloc(req, 100000);
	CHECK(memory && memory[99999] == 0);
	buf_printf(&body, "%s|%s|%s|%s|%s|%s", http_target(req), http_param(req, "a"),
		http_param(req, "b"), query ? query : "-", header ? header : "-",
		(const char *)http_ctx(req));
	CHECK(!http_param(req, "c"));
	http_add_header(req, "X-Good", "yes");
	http_add_header(req, "X-Bad", "a\r\nSet-Cookie: b");
	http_add_header(req, "X Bad", "a");
	http_respond(req, 201, "text/plain", &body);
}

static inline void handle_nothing(struct http_request *req)
{
	http_respond(req, 204, NULL, NULL);
}

static inline void handle_fault(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_INTERNAL, "broken \"badly\"");
	http_respond_error(req, &e);
}

static inline void handle_big(struct http_request *req)
{
	struct buf body = {0};
	buf_reserve(&body, BIG);
	memset(body.data, 'x', BIG);
	body.len = BIG;
	seen.handled++;
	http_respond(req, 200, "text/plain", &body);
}

static inline void count_abort(void *arg)
{
	(void)arg;
	seen.aborted++;
}

static inline void handle_later(struct http_request *req)
{
	seen.handled++;
	seen.pending = req;
	http_on_abort(req, count_abort, NULL);
}

static inline void handle_later_regardless(struct http_request *req)
{
	seen.handled++;
	seen.pending = req;
}

static inline void write_chunk(void)
{
	struct buf chunk = {0};
	buf_reserve(&chunk, seen.chunk_size);
	memset(chunk.data, 'c', seen.chunk_size);
	chunk.len = seen.chunk_size;
	http_stream_write(seen.pending, &chunk);
	CHECK(!chunk.data);
}

static inline void proceed_stream(void *arg)
{
	CHECK(arg == &seen);
	seen.proceeded++;
	if (seen.write_later)
		return;
	if (seen.abort_stream && seen.chunks_left == 0) {
		http_stream_abort(seen.pending);
		return;
	}
	if (seen.chunks_left != 0) {
		seen.chunks_left -= seen.chunks_left > 0;
		write_chunk();
	}
	if (seen.chunks_left == 0 && !seen.abort_stream)
		http_stream_end(seen.pending);
}

static inline void stop_stream(void *arg)
{
	CHECK(arg == &seen);
	seen.stopped++;
}

static inline void handle_stream(struct http_request *req)
{
	static const struct http_generator generator = {proceed_stream, stop_stream, &seen};
	seen.handled++;
	seen.pending = req;
	http_stream_begin(req, 200, "text/plain", &generator);
	if (seen.keepalive_ms)
		http_stream_keepalive(req, "...", 3, seen.keepalive_ms);
}

/* A status that has no body, from a generator that would have one. */
static inline void handle_unchanged(struct http_request *req)
{
	static const struct http_generator generator = {proceed_stream, stop_stream, &seen};
	seen.pending = req;
	http_stream_begin(req, 304, "text/plain", &generator);
}

static inline void handle_sized(struct http_request *req)
{
	static const struct http_generator generator = {proceed_stream, stop_stream, &seen};
	const char *length = http_query(req, "length");
	seen.handled++;
	seen.pending = req;
	http_stream_begin_sized(req, 206, "text/plain", (uint64_t)atoll(length), &generator);
}

/* ---- bodies as streams ---- */

static inline void upload_data(void *arg, const char *data, size_t len)
{
	CHECK(arg == &seen && len > 0 && !seen.ended && !seen.sink_aborted);
	seen.pieces++;
	if (seen.take_at_most > 0 && len > seen.take_at_most) {
		http_body_unread(seen.pending, len - seen.take_at_most);
		len = seen.take_at_most;
	}
	seen.uploaded += len;
	seen.largest_piece = len > seen.largest_piece ? len : seen.largest_piece;
	if (!seen.keep_nothing)
		buf_append(&seen.upload, data, len);
	if (seen.answer_at_once)
		respond_text(seen.pending, 409, "no");
	else if (seen.pause_each)
		http_body_pause(seen.pending);
}

static inline void upload_end(void *arg)
{
	char text[32];
	CHECK(arg == &seen && !seen.sink_aborted);
	seen.ended++;
	snprintf(text, sizeof text, "%llu", (unsigned long long)seen.uploaded);
	respond_text(seen.pending, 200, text);
}

static inline void upload_abort(void *arg)
{
	CHECK(arg == &seen && !seen.ended);
	seen.sink_aborted++;
}

static const struct http_body_sink upload_sink = {upload_data, upload_end, upload_abort, &seen};

static inline void handle_upload(struct http_request *req)
{
	size_t len;
	http_body(req, &len);
	CHECK_INT(len, 0);
	seen.handled++;
	seen.pending = req;
	if (!seen.take_later)
		http_body_stream(req, &upload_sink);
}

/* Sends back what comes, while it comes. */
static inline void mirror_data(void *arg, const char *data, size_t len)
{
	struct buf copy = {0};
	CHECK(arg == &seen);
	buf_append(&copy, data, len);
	http_body_pause(seen.pending);
	http_stream_write(seen.pending, &copy);
}

static inline void mirror_end(void *arg)
{
	CHECK(arg == &seen);
	seen.ended++;
	http_stream_end(seen.pending);
}

static inline void mirror_proceed(void *arg)
{
	CHECK(arg == &seen);
	http_body_resume(seen.pending);
}

static inline void handle_mirror(struct http_request *req)
{
	static const struct http_body_sink sink = {mirror_data, mirror_end, upload_abort, &seen};
	static const struct http_generator generator = {mirror_proceed, stop_stream, &seen};
	seen.handled++;
	seen.pending = req;
	http_body_stream(req, &sink);
	http_body_pause(req);
	http_stream_begin(req, 200, "text/plain", &generator);
}

/* The same without any framing. */
static inline void handle_tunnel(struct http_request *req)
{
	static const struct http_body_sink sink = {mirror_data, mirror_end, upload_abort, &seen};
	static const struct http_generator generator = {mirror_proceed, stop_stream, &seen};
	seen.handled++;
	seen.pending = req;
	if (!http_wants_upgrade(req, "mirror")) {
		respond_text(req, 400, "no");
		return;
	}
	http_add_header(req, "X-Extra", "yes");
	http_upgrade(req, "mirror", &sink, &generator);
}

static inline void handle_close(struct http_request *req)
{
	begin_close(1000);
	respond_text(req, 200, "closing");
}

static inline void handle_guarded(struct http_request *req)
{
	seen.handled++;
	respond_text(req, 200, http_principal(req));
}

static inline int admit_alice(struct http_request *req, struct error *e)
{
	static char alice[] = "alice";
	const char *header = http_header(req, "Authorization");
	seen.admitted++;
	if (!header || strcmp(header, alice) != 0)
		return error_set(e, ERROR_UNAUTHORIZED, "who are you?");
	http_set_principal(req, alice);
	return 0;
}

static inline void handle_path(struct http_request *req)
{
	struct buf body = {0};
	buf_printf(&body, "%s %s|%s|%s", http_method_text(req),
		http_method(req) == HTTP_ANY ? "any" : "known", http_param(req, "first"),
		http_param(req, "path"));
	http_respond(req, 200, "text/plain", &body);
}

static inline void encode_dialect_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer)
{
	http_add_header(req, "X-Dialect", http_ctx(req));
	if (answer->status == 404)
		answer->status = 410;
	answer->type = "text/dialect";
	buf_printf(&answer->body, "dialect: %s", error_name(e->code));
}

static inline unsigned claims_by_header(const struct http_request *req)
{
	return http_header(req, "X-Claim") != NULL;
}

/* A test may have routes of its own. */
#ifndef EXTRA_ROUTES
#define EXTRA_ROUTES
#endif

static const struct http_route open_routes[] = {
	EXTRA_ROUTES{HTTP_GET, "/hello", handle_hello, 0},
	{HTTP_POST, "/echo", handle_echo, 1 << 20},
	{HTTP_POST, "/small", handle_echo, 10},
	{HTTP_GET, "/describe/{a}/{b}", handle_describe, 0},
	{HTTP_DELETE, "/nothing", handle_nothing, 0},
	{HTTP_GET, "/fault", handle_fault, 0},
	{HTTP_GET, "/big", handle_big, 0},
	{HTTP_GET, "/later", handle_later, 0},
	{HTTP_GET, "/regardless", handle_later_regardless, 0},
	{HTTP_GET, "/stream", handle_stream, 0},
	{HTTP_GET, "/sized", handle_sized, 0},
	{HTTP_GET, "/unchanged", handle_unchanged, 0},
	{HTTP_PUT, "/upload", handle_upload, UINT64_MAX, true},
	{HTTP_PUT, "/upload/small", handle_upload, 10, true},
	{HTTP_ANY, "/tunnel", handle_tunnel, 10, true},
	{HTTP_POST, "/mirror", handle_mirror, UINT64_MAX, true},
	{HTTP_GET, "/close", handle_close, 0},
};
static const struct http_route guarded_routes[] = {
	{HTTP_GET, "/guarded", handle_guarded, 0},
	{HTTP_POST, "/guarded", handle_guarded, 1000},
};
static const struct http_route dialect_routes[] = {
	{HTTP_POST, "/guarded", handle_guarded, 10},
	{HTTP_PUT, "/upload", handle_upload, 10, true},
	{HTTP_GET, "/files/{path*}", handle_path, 0},
	{HTTP_ANY, "/raw/{path**}", handle_path, 0},
};
static char open_ctx[] = "open", dialect_ctx[] = "yes", claimed_ctx[] = "claimed";
static const struct http_mount mounts[] = {
	{open_routes, ARRAY_LEN(open_routes), NULL, open_ctx},
	{guarded_routes, ARRAY_LEN(guarded_routes), admit_alice, NULL},
	{dialect_routes, ARRAY_LEN(dialect_routes), admit_alice, dialect_ctx, "/dialect/{first}",
		.encode_error = encode_dialect_error},
	{dialect_routes, ARRAY_LEN(dialect_routes), admit_alice, claimed_ctx,
		.claims = claims_by_header, .claim = 1, .encode_error = encode_dialect_error},
};
static const struct http_limits generous = {
	.connections = 100,
	.refused = 64,
	.head_timeout_ms = 10000,
	.body_timeout_ms = 10000,
	.idle_timeout_ms = 10000,
	.first_timeout_ms = 10000,
};

static const struct http_limits hasty = {
	.connections = 100,
	.refused = 64,
	.head_timeout_ms = 200,
	.body_timeout_ms = 200,
	.idle_timeout_ms = 200,
	.first_timeout_ms = 200,
};

static inline void start(const struct http_limits *limits)
{
	buf_finish(&seen.upload);
	memset(&seen, 0, sizeof seen);
	fixture.closing = fixture.closed = false;
	socklen_t size = sizeof fixture.address;
	CHECK(uv_loop_init(&fixture.loop) == 0);
	fixture.listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	fixture.address = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	CHECK(bind(fixture.listen_fd, (struct sockaddr *)&fixture.address, size) == 0);
	CHECK(listen(fixture.listen_fd, 512) == 0);
	CHECK(getsockname(fixture.listen_fd, (struct sockaddr *)&fixture.address, &size) == 0);
	CHECK(http_server_open(&fixture.server, &fixture.loop, fixture.listen_fd, limits, mounts,
		      ARRAY_LEN(mounts)) == 0);
}

static inline void turn(void)
{
	uv_run(&fixture.loop, UV_RUN_NOWAIT);
}

static inline void turn_for(int64_t ms)
{
	int64_t end = clock_monotonic_us() + ms * 1000;
	while (clock_monotonic_us() < end) {
		turn();
		usleep(500);
	}
}

static inline void turn_until(const int *counter, int value)
{
	int64_t end = clock_monotonic_us() + 5000000;
	while (*counter < value && clock_monotonic_us() < end)
		turn();
	CHECK_INT(*counter, value);
}

/* Until the server has no connection left. */
static inline void turn_until_gone(void)
{
	struct http_counters counters;
	int64_t end = clock_monotonic_us() + 5000000;
	do {
		turn();
		http_server_counters(fixture.server, &counters);
	} while (counters.connections_open > 0 && clock_monotonic_us() < end);
	CHECK_INT(counters.connections_open, 0);
}

/* Everything must be given back: the loop has no handle left. */
static inline void stop(void)
{
	if (!fixture.closing)
		begin_close(0);
	uv_run(&fixture.loop, UV_RUN_DEFAULT);
	CHECK(fixture.closed);
	CHECK(uv_loop_close(&fixture.loop) == 0);
	CHECK(fcntl(fixture.listen_fd, F_GETFD) >= 0);
	close(fixture.listen_fd);
}

/* ---- the client ---- */

static inline int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(connect(fd, (struct sockaddr *)&fixture.address, sizeof fixture.address) == 0);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)) == 0);
	return fd;
}

static inline void say_n(int fd, const char *data, size_t len)
{
	int64_t end = clock_monotonic_us() + 5000000;
	while (len > 0 && clock_monotonic_us() < end) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
		if (n > 0) {
			data += n;
			len -= (size_t)n;
		}
		CHECK(n >= 0 || errno == EAGAIN);
		turn();
	}
	CHECK(len == 0);
}

static inline void say(int fd, const char *text)
{
	say_n(fd, text, strlen(text));
}

enum heard {
	HEARD_BYTES,
	HEARD_NOTHING,
	HEARD_END,
	HEARD_RESET
};

static inline enum heard listen_once(int fd, struct buf *in)
{
	turn();
	CHECK(buf_reserve(in, 65536));
	ssize_t n = recv(fd, in->data + in->len, in->cap - in->len, 0);
	if (n > 0) {
		in->len += (size_t)n;
		return HEARD_BYTES;
	}
	if (n == 0)
		return HEARD_END;
	if (errno != EAGAIN)
		return HEARD_RESET;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	poll(&p, 1, 1);
	return HEARD_NOTHING;
}

/* Whatever comes until the server closes; NUL-terminated. */
static inline enum heard hear_all(int fd, struct buf *in)
{
	int64_t end = clock_monotonic_us() + 8000000;
	enum heard heard;
	do
		heard = listen_once(fd, in);
	while (heard <= HEARD_NOTHING && clock_monotonic_us() < end);
	buf_append_char(in, '\0');
	return heard;
}

struct answer {
	int status;
	struct buf text; /* head and body, NUL-terminated after the body */
	char *body;
	size_t body_len;
};

static inline void answer_finish(struct answer *a)
{
	buf_finish(&a->text);
}
#define autoanswer __attribute__((cleanup(answer_finish))) struct answer

static inline const char *field_of(const struct answer *a, const char *name)
{
	static char value[512];
	size_t len = strlen(name);
	for (const char *line = strstr(a->text.data, "\r\n"); line && line[2] != '\r';
		line = strstr(line + 2, "\r\n")) {
		if (strncasecmp(line + 2, name, len) == 0 && line[2 + len] == ':') {
			snprintf(value, sizeof value, "%.*s", (int)strcspn(line + len + 4, "\r"),
				line + len + 4);
			return value;
		}
	}
	return NULL;
}

/* How long the first answer in the text is, or 0 when it is not complete. Sets status and body. */
static inline size_t measure_answer(struct answer *a, bool to_head)
{
	struct buf *in = &a->text;
	if (!buf_reserve(in, 1) || in->len == 0)
		return 0;
	in->data[in->len] = '\0';
	char *end = strstr(in->data, "\r\n\r\n");
	if (!end)
		return 0;
	CHECK(strncmp(in->data, "HTTP/1.1 ", 9) == 0);
	a->status = atoi(in->data + 9);
	a->body = end + 4;
	size_t head = (size_t)(a->body - in->data);
	const char *length = field_of(a, "Content-Length");
	a->body_len = 0;
	if (a->status < 200 || a->status == 204 || to_head)
		return head;
	if (length) {
		a->body_len = (size_t)atoll(length);
		return in->len - head >= a->body_len ? head + a->body_len : 0;
	}
	char *last = strstr(a->body, "0\r\n\r\n");
	if (!last)
		return 0;
	a->body_len = (size_t)(last + 5 - a->body);
	return head + a->body_len;
}

/* Bytes that came after the answer that was asked for. */
static struct buf beyond;

static inline void hear_to(int fd, struct answer *a, bool to_head)
{
	int64_t end = clock_monotonic_us() + 5000000;
	size_t len;
	*a = (struct answer){.text = beyond};
	beyond = (struct buf){0};
	while ((len = measure_answer(a, to_head)) == 0) {
		enum heard heard = listen_once(fd, &a->text);
		CHECK(heard <= HEARD_NOTHING && clock_monotonic_us() < end);
	}
	buf_append(&beyond, a->text.data + len, a->text.len - len);
	a->text.len = len;
	buf_append_char(&a->text, '\0');
	measure_answer(a, to_head);
}

static inline void hear(int fd, struct answer *a)
{
	hear_to(fd, a, false);
}

/* One answer with this status, then the end of the connection, whatever the request held. */
static inline void answered_and_closed(const char *request, size_t len, int status)
{
	autoclose int fd = dial();
	autobuf in = {0};
	send(fd, request, len, MSG_NOSIGNAL);
	enum heard heard = hear_all(fd, &in);
	if (heard != HEARD_END)
		check_fail(__FILE__, __LINE__, request, "not closed", "closed");
	CHECK(strncmp(in.data, "HTTP/1.1 ", 9) == 0);
	if (atoi(in.data + 9) != status)
		check_fail(__FILE__, __LINE__, request, in.data, "another status");
	CHECK(strstr(in.data, "\r\nConnection: close\r\n"));
	CHECK(strstr(in.data, "\r\nX-Request-Id: "));
	CHECK(!strstr(in.data + 9, "HTTP/1.1"));
}

#define ANSWERED_AND_CLOSED(literal, status)                                                       \
	answered_and_closed("" literal, sizeof(literal) - 1, status)

/* Runs the tests as main does. */
static inline int run_http_tests(const struct check_test *tests, size_t count)
{
	signal(SIGPIPE, SIG_IGN);
	log_set_level(LOG_ERROR);
	int failed = check_run(tests, count);
	buf_finish(&beyond);
	buf_finish(&seen.upload);
	return failed;
}
