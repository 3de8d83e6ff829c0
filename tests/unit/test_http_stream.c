/* Streamed answers: chunks, backpressure, and every way in which they may end early. */
#include "http/sse.h"
#include "http_fixture.h"

static void streams_in_chunks(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.chunks_left = 2;
	seen.chunk_size = 3;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_STR(field_of(&a, "Transfer-Encoding"), "chunked");
	CHECK_STR(a.body, "3\r\nccc\r\n3\r\nccc\r\n0\r\n\r\n");
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	CHECK_INT(seen.stopped, 0);
	stop();
}

static void streams_nothing(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_STR(a.body, "0\r\n\r\n");
	stop();
}

static void streams_to_http_1_0_until_the_close(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.chunks_left = 2;
	seen.chunk_size = 3;
	say(fd, "GET /stream HTTP/1.0\r\n\r\n");
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(!strstr(in.data, "Transfer-Encoding"));
	CHECK_STR(strstr(in.data, "\r\n\r\n"), "\r\n\r\ncccccc");
	stop();
}

static void sends_the_head_of_a_quiet_stream_at_once(void)
{
	start(&hasty);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.write_later = true;
	seen.chunk_size = 2;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	hear_to(fd, &a, true);
	CHECK_INT(a.status, 200);
	/* A stream may be quiet for as long as it likes, and is asked once. */
	turn_for(500);
	CHECK_INT(seen.proceeded, 1);
	write_chunk();
	CHECK_INT(seen.proceeded, 1);
	turn_until(&seen.proceeded, 2);
	http_stream_end(seen.pending);
	buf_append_str(&beyond, "HTTP/1.1 200 \r\n\r\n");
	hear(fd, &b);
	CHECK_STR(b.body, "2\r\ncc\r\n0\r\n\r\n");
	CHECK_INT(seen.stopped, 0);
	stop();
}

static void ends_right_after_a_write(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.chunks_left = 1;
	seen.chunk_size = BIG;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(in.len > BIG && strcmp(in.data + in.len - 10, "cc\r\n0\r\n\r\n") == 0);
	CHECK_INT(seen.stopped, 0);
	stop();
}

static void asks_for_more_only_as_the_client_reads(void)
{
	start(&generous);
	int fd = dial();
	autobuf in = {0};
	seen.chunks_left = -1;
	seen.chunk_size = 1 << 20;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	turn_for(100);
	int asked = seen.proceeded;
	CHECK(asked > 0 && asked < 20);
	turn_for(50);
	CHECK_INT(seen.proceeded, asked);
	while (in.len < 16 << 20)
		CHECK(listen_once(fd, &in) <= HEARD_NOTHING);
	CHECK(seen.proceeded > asked + 10);
	CHECK_INT(seen.stopped, 0);
	close(fd);
	turn_until(&seen.stopped, 1);
	turn_for(5);
	stop();
	CHECK_INT(seen.stopped, 1);
}

static void stops_a_quiet_stream_when_the_client_leaves(void)
{
	start(&generous);
	int fd = dial();
	seen.write_later = true;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.proceeded, 1);
	close(fd);
	turn_until(&seen.stopped, 1);
	stop();
	CHECK_INT(seen.stopped, 1);
}

static void stops_a_stream_when_the_client_does_not_read(void)
{
	start(&hasty);
	autoclose int fd = dial();
	seen.chunks_left = -1;
	seen.chunk_size = 1 << 20;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.stopped, 1);
	stop();
	CHECK_INT(seen.stopped, 1);
}

/* The client resets while the generator is writing: stop comes later, from the loop, and once. */
static void stops_once_when_a_write_fails(void)
{
	start(&generous);
	int fd = dial();
	struct linger reset = {1, 0};
	seen.write_later = true;
	seen.chunk_size = 10;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.proceeded, 1);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(fd);
	write_chunk();
	CHECK_INT(seen.stopped, 0);
	write_chunk();
	CHECK_INT(seen.stopped, 0);
	turn_until(&seen.stopped, 1);
	stop();
	CHECK_INT(seen.stopped, 1);
}

static void answers_head_of_a_stream_without_running_it(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.chunks_left = -1;
	seen.chunk_size = 3;
	say(fd, "HEAD /stream HTTP/1.1\r\n" HOST "\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
	hear_to(fd, &a, true);
	CHECK_INT(a.status, 200);
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	CHECK_INT(seen.proceeded, 0);
	CHECK_INT(seen.stopped, 1);
	stop();
}

static void shows_that_a_stream_was_cut_short(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoclose int old = dial();
	autobuf in = {0}, old_in = {0};
	seen.abort_stream = true;
	seen.chunks_left = 1;
	seen.chunk_size = 3;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK_STR(strstr(in.data, "\r\n\r\n"), "\r\n\r\n3\r\nccc\r\n");
	seen.chunks_left = 1;
	say(old, "GET /stream HTTP/1.0\r\n\r\n");
	CHECK_INT(hear_all(old, &old_in), HEARD_RESET);
	CHECK_INT(seen.stopped, 0);
	stop();
}

static void stops_a_stream_that_begins_after_the_client_left(void)
{
	static const struct http_generator generator = {proceed_stream, stop_stream, &seen};
	start(&generous);
	int fd = dial();
	say(fd, "GET /regardless HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	close(fd);
	turn_for(20);
	http_stream_begin(seen.pending, 200, "text/plain", &generator);
	CHECK_INT(seen.stopped, 0);
	turn_until(&seen.stopped, 1);
	CHECK_INT(seen.proceeded, 0);
	stop();
}

static void announces_a_known_length(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.chunks_left = 2;
	seen.chunk_size = 3;
	say(fd, "GET /sized?length=6 HTTP/1.1\r\n" HOST "\r\n" NEXT);
	hear(fd, &a);
	CHECK(strncmp(a.text.data, "HTTP/1.1 206 Partial Content\r\n", 30) == 0);
	CHECK_STR(field_of(&a, "Content-Length"), "6");
	CHECK(!field_of(&a, "Transfer-Encoding"));
	CHECK_STR(a.body, "cccccc");
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	CHECK_INT(seen.stopped, 0);
	stop();
}

static void sends_only_the_head_of_a_known_length_to_head(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.chunks_left = 2;
	seen.chunk_size = 3;
	say(fd, "HEAD /sized?length=6 HTTP/1.1\r\n" HOST "\r\n" NEXT);
	hear_to(fd, &a, true);
	CHECK_STR(field_of(&a, "Content-Length"), "6");
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	stop();
	CHECK_INT(seen.stopped, 1);
	CHECK_INT(seen.proceeded, 0);
}

static void closes_when_fewer_bytes_come_than_were_announced(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.chunks_left = 2;
	seen.chunk_size = 3;
	say(fd, "GET /sized?length=7 HTTP/1.1\r\n" HOST "\r\n" NEXT);
	CHECK(hear_all(fd, &in) >= HEARD_END);
	CHECK(strstr(in.data, "\r\n\r\ncccccc"));
	CHECK(!strstr(in.data, "hello"));
	CHECK_INT(seen.stopped, 0);
	stop();
}

/* An endless generator, too: it is stopped once. */
static void sends_no_more_bytes_than_were_announced(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.chunks_left = -1;
	seen.chunk_size = 4;
	say(fd, "GET /sized?length=6 HTTP/1.1\r\n" HOST "\r\n" NEXT);
	hear(fd, &a);
	CHECK_STR(a.body, "cccccc");
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	stop();
	CHECK_INT(seen.stopped, 1);
	CHECK_INT(seen.proceeded, 2);
}

static void streams_a_known_length_of_nothing(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, "GET /sized?length=0 HTTP/1.1\r\n" HOST "\r\n" NEXT);
	hear(fd, &a);
	CHECK_STR(field_of(&a, "Content-Length"), "0");
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	stop();
}

static void sends_no_body_where_there_is_none(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	seen.chunks_left = -1;
	say(fd, "GET /unchanged HTTP/1.1\r\n" HOST "\r\n" NEXT);
	hear_to(fd, &a, true);
	CHECK_INT(a.status, 304);
	CHECK(!field_of(&a, "Transfer-Encoding"));
	hear(fd, &b);
	CHECK_STR(b.body, "hello");
	stop();
	CHECK_INT(seen.stopped, 1);
}

static void keeps_a_quiet_stream_alive(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.write_later = true;
	seen.chunk_size = 2;
	seen.keepalive_ms = 60;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	while (in.len < 3 || strncmp(in.data + in.len - 16, "3\r\n...\r\n3\r\n...\r\n", 16) != 0)
		CHECK(listen_once(fd, &in) <= HEARD_NOTHING);
	/* It is none of the generator's business. */
	CHECK_INT(seen.proceeded, 1);
	write_chunk();
	turn_until(&seen.proceeded, 2);
	http_stream_end(seen.pending);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK_STR(strstr(in.data, "\r\n\r\n"),
		"\r\n\r\n3\r\n...\r\n3\r\n...\r\n2\r\ncc\r\n0\r\n\r\n");
	stop();
}

static void keeps_quiet_while_a_stream_is_written(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	seen.write_later = true;
	seen.chunk_size = 2;
	seen.keepalive_ms = 100;
	say(fd, "GET /stream HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	for (int i = 1; i <= 6; i++) {
		turn_until(&seen.proceeded, i);
		turn_for(40);
		write_chunk();
	}
	http_stream_end(seen.pending);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(!strstr(in.data, "..."));
	stop();
}

static void writes_events(void)
{
	autobuf out = {0};
	sse_begin(&out, "greeting", "7");
	buf_append_str(&out, "hello");
	sse_end(&out);
	sse_begin(&out, NULL, NULL);
	buf_append_str(&out, "{}");
	sse_end(&out);
	/* Nobody begins an event within another's name. */
	sse_begin(&out, "a\n\nevent: b", "1\rdata: x");
	sse_end(&out);
	buf_append_char(&out, '\0');
	CHECK_STR(out.data, "id: 7\nevent: greeting\ndata: hello\n\ndata: {}\n\ndata: \n\n");
}

#define UPGRADE "Connection: upgrade\r\nUpgrade: x, Mirror\r\n"

static void passes_bytes_both_ways_after_an_upgrade(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	say(fd, "GET /tunnel HTTP/1.1\r\n" HOST UPGRADE "\r\nfirst");
	while (!in.data || !memmem(in.data, in.len, "first", 5))
		CHECK(listen_once(fd, &in) <= HEARD_NOTHING);
	say(fd, " GET /hello HTTP/1.1\r\n\r\n");
	/* The end of one side is told as such, and the other side goes on until it ends. */
	shutdown(fd, SHUT_WR);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strncmp(in.data, "HTTP/1.1 101 Switching Protocols\r\n", 34) == 0);
	CHECK(strstr(in.data, "\r\nConnection: Upgrade\r\nUpgrade: mirror\r\n"));
	CHECK(strstr(in.data, "\r\nX-Extra: yes\r\n"));
	CHECK_STR(strstr(in.data, "\r\n\r\n"), "\r\n\r\nfirst GET /hello HTTP/1.1\r\n\r\n");
	CHECK_INT(seen.ended, 1);
	stop();
	CHECK_INT(seen.stopped, 0);
}

static void stops_an_upgraded_connection_when_the_client_vanishes(void)
{
	start(&generous);
	int fd = dial();
	const struct linger reset = {1, 0};
	say(fd, "GET /tunnel HTTP/1.1\r\n" HOST UPGRADE "\r\nx");
	turn_for(10);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(fd);
	turn_until(&seen.stopped, 1);
	stop();
	CHECK_INT(seen.stopped, 1);
	CHECK_INT(seen.sink_aborted, 0);
}

static void upgrades_only_what_can_be_upgraded(void)
{
	static const char *const requests[] = {
		"GET /tunnel HTTP/1.1\r\n" HOST "\r\n",
		"GET /tunnel HTTP/1.1\r\n" HOST "Upgrade: mirror\r\n\r\n",
		"GET /tunnel HTTP/1.1\r\n" HOST "Connection: upgrade\r\nUpgrade: mirrors\r\n\r\n",
		"POST /tunnel HTTP/1.1\r\n" HOST UPGRADE "\r\n",
		"HEAD /tunnel HTTP/1.1\r\n" HOST UPGRADE "\r\n",
		"GET /tunnel HTTP/1.1\r\n" HOST UPGRADE "Content-Length: 1\r\n\r\nx",
		"GET /tunnel HTTP/1.1\r\n" HOST UPGRADE "Transfer-Encoding: chunked\r\n\r\n",
		"GET /tunnel HTTP/1.0\r\n" UPGRADE "\r\n",
	};
	start(&generous);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		autoclose int fd = dial();
		autoanswer a;
		say(fd, requests[i]);
		hear_to(fd, &a, true);
		CHECK_INT(a.status, 400);
		beyond.len = 0;
	}
	stop();
}

static const struct check_test tests[] = {
	TEST(streams_in_chunks),
	TEST(streams_nothing),
	TEST(streams_to_http_1_0_until_the_close),
	TEST(sends_the_head_of_a_quiet_stream_at_once),
	TEST(ends_right_after_a_write),
	TEST(asks_for_more_only_as_the_client_reads),
	TEST(stops_a_quiet_stream_when_the_client_leaves),
	TEST(stops_a_stream_when_the_client_does_not_read),
	TEST(stops_once_when_a_write_fails),
	TEST(answers_head_of_a_stream_without_running_it),
	TEST(shows_that_a_stream_was_cut_short),
	TEST(stops_a_stream_that_begins_after_the_client_left),
	TEST(announces_a_known_length),
	TEST(sends_only_the_head_of_a_known_length_to_head),
	TEST(closes_when_fewer_bytes_come_than_were_announced),
	TEST(sends_no_more_bytes_than_were_announced),
	TEST(streams_a_known_length_of_nothing),
	TEST(passes_bytes_both_ways_after_an_upgrade),
	TEST(stops_an_upgraded_connection_when_the_client_vanishes),
	TEST(upgrades_only_what_can_be_upgraded),
	TEST(sends_no_body_where_there_is_none),
	TEST(keeps_a_quiet_stream_alive),
	TEST(keeps_quiet_while_a_stream_is_written),
	TEST(writes_events),
};

int main(void)
{
	return run_http_tests(tests, ARRAY_LEN(tests));
}
