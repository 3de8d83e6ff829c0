/* The life of connections: reuse, pipelining, limits, deadlines, leaving clients, the end. */
#include <sys/resource.h>

#include "http_fixture.h"

/* ---- connections ---- */

static void keeps_the_connection_alive(void)
{
	start(&generous);
	autoclose int fd = dial();
	for (int i = 1; i <= 100; i++) {
		autoanswer a;
		char number[16];
		say(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
		hear(fd, &a);
		CHECK_INT(a.status, 200);
		snprintf(number, sizeof number, "-%d", i);
		CHECK_STR(strchr(field_of(&a, "X-Request-Id"), '-'), number);
	}
	stop();
}

static void answers_pipelined_requests_in_order(void)
{
	enum {
		COUNT = 2000
	};
	autobuf requests = {0};
	start(&generous);
	autoclose int fd = dial();
	for (int i = 0; i < COUNT; i++)
		buf_printf(&requests,
			"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\n%04d", i);
	say_n(fd, requests.data, requests.len);
	for (int i = 0; i < COUNT; i++) {
		autoanswer a;
		char wanted[16];
		hear(fd, &a);
		snprintf(wanted, sizeof wanted, "%04d", i);
		CHECK_STR(a.body, wanted);
	}
	stop();
}

static void keeps_pipelined_requests_until_a_late_answer(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b, c;
	say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\nGET /later HTTP/1.1\r\n" HOST
		"\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	turn_for(5);
	CHECK_INT(seen.handled, 1);
	respond_text(seen.pending, 200, "one");
	/* The next handler runs from the loop, not inside the call above. */
	CHECK_INT(seen.handled, 1);
	turn_until(&seen.handled, 2);
	respond_text(seen.pending, 200, "two");
	hear(fd, &a);
	CHECK_STR(a.body, "one");
	hear(fd, &b);
	CHECK_STR(b.body, "two");
	hear(fd, &c);
	CHECK_STR(c.body, "hello");
	CHECK_INT(seen.aborted, 0);
	stop();
}

static void stops_reading_when_too_much_is_pipelined(void)
{
	enum {
		SIZE = 64 << 20
	};
	start(&generous);
	autoclose int fd = dial();
	autofree char *data = calloc(1, 65536);
	size_t sent = 0;
	say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	for (int quiet = 0; quiet < 20 && sent < SIZE;) {
		ssize_t n = send(fd, data, 65536, MSG_NOSIGNAL);
		sent += n > 0 ? (size_t)n : 0;
		quiet = n > 0 ? 0 : quiet + 1;
		turn_for(1);
	}
	CHECK(sent < SIZE);
	respond_text(seen.pending, 200, "done");
	autobuf in = {0};
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strstr(in.data, "done") && strstr(in.data, "HTTP/1.1 400 "));
	stop();
}

static void closes_when_asked_and_after_http_1_0(void)
{
	start(&generous);
	ANSWERED_AND_CLOSED("GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n" NEXT, 200);
	ANSWERED_AND_CLOSED("GET /hello HTTP/1.0\r\n\r\n" NEXT, 200);
	ANSWERED_AND_CLOSED("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 200);
	CHECK_INT(seen.handled, 3);
	stop();
}

#define WITH_KEY "GET /guarded HTTP/1.1\r\n" HOST "Authorization: alice\r\n\r\n"

static void hear_status(int fd, const char *request, int status)
{
	autoanswer a;
	say(fd, request);
	hear(fd, &a);
	CHECK_INT(a.status, status);
}

static void answers_503_beyond_the_limit_of_connections(void)
{
	struct http_limits two = generous;
	two.connections = 2;
	start(&two);
	int first = dial();
	autoclose int second = dial();
	hear_status(first, WITH_KEY, 200);
	hear_status(second, WITH_KEY, 200);
	ANSWERED_AND_CLOSED("GET /hello HTTP/1.1\r\n" HOST "\r\n", 503);
	CHECK_INT(seen.handled, 2);
	close(first);
	turn_for(20);
	ANSWERED_AND_CLOSED("GET /hello HTTP/1.0\r\n\r\n", 200);
	stop();
}

static bool is_cut(int fd)
{
	autobuf in = {0};
	return hear_all(fd, &in) == HEARD_END;
}

static void gives_the_place_of_the_oldest_without_a_key_to_the_next(void)
{
	struct http_limits three = generous;
	three.connections = 3;
	start(&three);
	autoclose int known = dial();
	hear_status(known, WITH_KEY, 200);
	autoclose int silent = dial();
	turn_for(5);
	autoclose int half = dial();
	say(half, "GET /hello HTTP/1.1\r\n");
	turn_for(5);
	autoclose int next = dial();
	hear_status(next, "GET /hello HTTP/1.1\r\n" HOST "\r\n", 200);
	CHECK(is_cut(silent));
	autoclose int last = dial();
	hear_status(last, "GET /hello HTTP/1.1\r\n" HOST "\r\n", 200);
	CHECK(is_cut(half));
	hear_status(known, WITH_KEY, 200);
	struct http_counters counters;
	http_server_counters(fixture.server, &counters);
	CHECK_INT((long long)counters.connections_evicted, 2);
	stop();
}

static void keeps_places_for_those_with_a_key(void)
{
	struct http_limits four = generous;
	four.connections = 4;
	four.known_places = 2;
	start(&four);
	autoclose int a = dial();
	hear_status(a, WITH_KEY, 200);
	autoclose int b = dial();
	hear_status(b, WITH_KEY, 200);
	autoclose int c = dial();
	turn_for(5);
	autoclose int d = dial();
	hear_status(d, WITH_KEY, 200);
	hear_status(c, WITH_KEY, 200);
	autoclose int e = dial();
	hear_status(e, "GET /hello HTTP/1.1\r\n" HOST "\r\n", 503);
	stop();
}

static int dial_from(const char *address)
{
	struct sockaddr_in from = {.sin_family = AF_INET};
	inet_pton(AF_INET, address, &from.sin_addr);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(fd, (struct sockaddr *)&from, sizeof from) == 0);
	CHECK(connect(fd, (struct sockaddr *)&fixture.address, sizeof fixture.address) == 0);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	return fd;
}

static void limits_the_connections_of_one_address(void)
{
	struct http_limits few = generous;
	few.per_address = 1;
	few.counts_loopback = true;
	start(&few);
	autoclose int silent = dial_from("127.0.0.2");
	turn_for(5);
	autoclose int known = dial_from("127.0.0.2");
	hear_status(known, WITH_KEY, 200);
	CHECK(is_cut(silent));
	autoclose int refused = dial_from("127.0.0.2");
	hear_status(refused, WITH_KEY, 503);
	autoclose int other = dial_from("127.0.0.3");
	hear_status(other, WITH_KEY, 200);
	stop();
}

static void survives_running_out_of_descriptors(void)
{
	struct rlimit old, low;
	start(&generous);
	autoclose int first = dial();
	autoclose int second = dial();
	autoanswer a;
	CHECK(getrlimit(RLIMIT_NOFILE, &old) == 0);
	low = old;
	low.rlim_cur = (rlim_t)second + 1;
	CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
	say(first, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	/* The loop must sleep between two attempts, not spin. */
	int turns = 0;
	for (int64_t end = clock_monotonic_us() + 150000; clock_monotonic_us() < end; turns++)
		uv_run(&fixture.loop, UV_RUN_ONCE);
	CHECK(setrlimit(RLIMIT_NOFILE, &old) == 0);
	CHECK(turns < 10);
	CHECK_INT(seen.handled, 0);
	hear(first, &a);
	CHECK_INT(a.status, 200);
	stop();
}

/* ---- deadlines ---- */

static void closes_idle_connections(void)
{
	start(&hasty);
	autoclose int fresh = dial();
	autoclose int used = dial();
	autobuf in = {0}, rest = {0};
	autoanswer a;
	int64_t began = clock_monotonic_us();
	say(used, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	hear(used, &a);
	CHECK_INT(hear_all(fresh, &in), HEARD_END);
	CHECK_INT(hear_all(used, &rest), HEARD_END);
	CHECK(in.len == 1 && rest.len == 1);
	int64_t took = clock_monotonic_us() - began;
	CHECK(took > 190000 && took < 2000000);
	stop();
}

static void keeps_busy_connections_past_the_idle_deadline(void)
{
	start(&hasty);
	autoclose int fd = dial();
	for (int i = 0; i < 4; i++) {
		autoanswer a;
		say(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
		hear(fd, &a);
		turn_for(80);
	}
	stop();
}

static void answers_408_to_a_head_that_does_not_end(void)
{
	start(&hasty);
	autoclose int fd = dial();
	autobuf in = {0};
	/* A byte now and then does not help. */
	int64_t began = clock_monotonic_us();
	say(fd, "GET /hello HTTP/1.1\r\nX-Slow: ");
	while (in.len == 0 && clock_monotonic_us() - began < 2000000) {
		send(fd, "a", 1, MSG_NOSIGNAL);
		turn_for(10);
		listen_once(fd, &in);
	}
	CHECK(clock_monotonic_us() - began < 1500000);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strncmp(in.data, "HTTP/1.1 408 ", 13) == 0);
	stop();
}

static void answers_408_to_a_body_that_stalls(void)
{
	start(&hasty);
	autoclose int fd = dial();
	autobuf in = {0};
	say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n");
	for (int i = 0; i < 5; i++) {
		turn_for(80);
		say(fd, "x");
	}
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strncmp(in.data, "HTTP/1.1 408 ", 13) == 0);
	CHECK_INT(seen.handled, 0);
	stop();
}

static void drops_a_client_that_does_not_read_its_answer(void)
{
	start(&hasty);
	autoclose int fd = dial();
	say(fd, "GET /big HTTP/1.1\r\n" HOST "\r\n");
	turn_until_gone();
	stop();
}

static void waits_for_a_client_that_reads_slowly(void)
{
	enum {
		SIP = 200 << 10
	};
	start(&hasty);
	autoclose int fd = dial();
	autofree char *sip = malloc(SIP);
	size_t total = 0;
	int64_t began = clock_monotonic_us();
	ssize_t n;
	say(fd, "GET /big HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
	while ((n = recv(fd, sip, SIP, 0)) != 0) {
		CHECK(n > 0 || errno == EAGAIN);
		total += n > 0 ? (size_t)n : 0;
		turn_for(20);
	}
	CHECK(total > BIG);
	CHECK(clock_monotonic_us() - began > 500000);
	stop();
}

static void lets_handlers_take_their_time(void)
{
	start(&hasty);
	autoclose int fd = dial();
	autoanswer a;
	say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	turn_for(500);
	CHECK_INT(seen.aborted, 0);
	respond_text(seen.pending, 200, "at last");
	hear(fd, &a);
	CHECK_STR(a.body, "at last");
	stop();
}

/* ---- clients that leave ---- */

static void tells_a_pending_handler_that_the_client_left(void)
{
	start(&generous);
	int fd = dial();
	say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	close(fd);
	turn_until(&seen.aborted, 1);
	turn_for(5);
	CHECK_INT(seen.aborted, 1);
	stop();
	CHECK_INT(seen.aborted, 1);
}

static void tells_a_pending_handler_about_a_reset(void)
{
	start(&generous);
	int fd = dial();
	struct linger reset = {1, 0};
	say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(fd);
	turn_until(&seen.aborted, 1);
	stop();
	CHECK_INT(seen.aborted, 1);
}

static void takes_a_half_close_for_leaving(void)
{
	start(&generous);
	autoclose int fd = dial();
	say(fd, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	shutdown(fd, SHUT_WR);
	turn_until(&seen.aborted, 1);
	stop();
}

static void answers_before_a_half_close_is_seen(void)
{
	start(&generous);
	autoclose int fd = dial();
	autobuf in = {0};
	send(fd, NEXT NEXT, sizeof(NEXT NEXT) - 1, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK_INT(seen.handled, 2);
	CHECK(strstr(strstr(in.data, "hello") + 1, "hello"));
	stop();
}

static void keeps_the_request_of_a_handler_that_does_not_ask_about_aborts(void)
{
	start(&generous);
	int fd = dial();
	say(fd, "GET /regardless HTTP/1.1\r\n" HOST "X-Test: still here\r\n\r\n");
	turn_until(&seen.handled, 1);
	close(fd);
	turn_for(20);
	CHECK_STR(http_header(seen.pending, "x-test"), "still here");
	respond_text(seen.pending, 200, "nobody reads this");
	turn_until_gone();
	stop();
}

static void tells_a_handler_that_asks_too_late(void)
{
	start(&generous);
	int fd = dial();
	say(fd, "GET /regardless HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	close(fd);
	turn_for(20);
	http_on_abort(seen.pending, count_abort, NULL);
	CHECK_INT(seen.aborted, 0);
	turn_until(&seen.aborted, 1);
	stop();
}

/* ---- the end ---- */

static void finishes_what_is_being_answered_before_it_closes(void)
{
	start(&generous);
	autoclose int busy = dial();
	autoclose int idle = dial();
	autobuf in = {0}, rest = {0};
	say(busy, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	begin_close(5000);
	CHECK_INT(hear_all(idle, &in), HEARD_END);
	CHECK(!fixture.closed);
	respond_text(seen.pending, 200, "bye");
	CHECK_INT(hear_all(busy, &rest), HEARD_END);
	CHECK(strstr(rest.data, "Connection: close\r\n") && strstr(rest.data, "bye"));
	close(take_fd(&busy));
	CHECK_INT(seen.aborted, 0);
	stop();
}

static void aborts_what_is_left_after_the_grace(void)
{
	start(&generous);
	autoclose int later = dial();
	autoclose int stream = dial();
	seen.write_later = true;
	say(later, "GET /later HTTP/1.1\r\n" HOST "\r\n");
	say(stream, "GET /stream HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 2);
	turn_until(&seen.proceeded, 1);
	begin_close(50);
	turn_for(20);
	CHECK(seen.aborted == 0 && seen.stopped == 0);
	turn_until(&seen.aborted, 1);
	turn_until(&seen.stopped, 1);
	stop();
}

static void waits_for_handlers_that_cannot_be_aborted(void)
{
	start(&generous);
	autoclose int fd = dial();
	say(fd, "GET /regardless HTTP/1.1\r\n" HOST "\r\n");
	turn_until(&seen.handled, 1);
	begin_close(0);
	turn_for(20);
	CHECK(!fixture.closed);
	respond_text(seen.pending, 200, "too late");
	stop();
}

static void closes_from_inside_a_handler(void)
{
	start(&generous);
	ANSWERED_AND_CLOSED("GET /close HTTP/1.1\r\n" HOST "\r\n" NEXT, 200);
	CHECK_INT(seen.handled, 0);
	stop();
}

/* Returns the server's end of a connection, or -1. */
static int find_far_end(int fd)
{
	struct sockaddr_in own = {0}, peer;
	socklen_t size = sizeof own;
	CHECK_INT(getsockname(fd, (struct sockaddr *)&own, &size), 0);
	for (int i = 0; i < 256; i++) {
		size = sizeof peer;
		if (i != fd && getpeername(i, (struct sockaddr *)&peer, &size) == 0 &&
			peer.sin_port == own.sin_port)
			return i;
	}
	return -1;
}

static int option_of(int fd, int level, int name)
{
	int value = -1;
	socklen_t size = sizeof value;
	CHECK_INT(getsockopt(fd, level, name, &value, &size), 0);
	return value;
}

static void sends_without_delay_and_probes_silent_clients(void)
{
	start(&generous);
	autoclose int fd = dial();
	turn_for(5);
	int far = find_far_end(fd);
	CHECK(far >= 0);
	CHECK_INT(option_of(far, IPPROTO_TCP, TCP_NODELAY), 1);
	CHECK_INT(option_of(far, SOL_SOCKET, SO_KEEPALIVE), 1);
	CHECK_INT(option_of(far, IPPROTO_TCP, TCP_KEEPIDLE), 60);
	stop();
}

static const struct check_test tests[] = {
	TEST(sends_without_delay_and_probes_silent_clients),
	TEST(keeps_the_connection_alive),
	TEST(answers_pipelined_requests_in_order),
	TEST(keeps_pipelined_requests_until_a_late_answer),
	TEST(stops_reading_when_too_much_is_pipelined),
	TEST(closes_when_asked_and_after_http_1_0),
	TEST(answers_503_beyond_the_limit_of_connections),
	TEST(gives_the_place_of_the_oldest_without_a_key_to_the_next),
	TEST(keeps_places_for_those_with_a_key),
	TEST(limits_the_connections_of_one_address),
	TEST(survives_running_out_of_descriptors),
	TEST(closes_idle_connections),
	TEST(keeps_busy_connections_past_the_idle_deadline),
	TEST(answers_408_to_a_head_that_does_not_end),
	TEST(answers_408_to_a_body_that_stalls),
	TEST(drops_a_client_that_does_not_read_its_answer),
	TEST(waits_for_a_client_that_reads_slowly),
	TEST(lets_handlers_take_their_time),
	TEST(tells_a_pending_handler_that_the_client_left),
	TEST(tells_a_pending_handler_about_a_reset),
	TEST(takes_a_half_close_for_leaving),
	TEST(answers_before_a_half_close_is_seen),
	TEST(keeps_the_request_of_a_handler_that_does_not_ask_about_aborts),
	TEST(tells_a_handler_that_asks_too_late),
	TEST(finishes_what_is_being_answered_before_it_closes),
	TEST(aborts_what_is_left_after_the_grace),
	TEST(waits_for_handlers_that_cannot_be_aborted),
	TEST(closes_from_inside_a_handler),
};

int main(void)
{
	return run_http_tests(tests, ARRAY_LEN(tests));
}
