/* What the server answers and what it refuses: routes, bodies, malformed requests. */
#include "http_fixture.h"

/* ---- answers ---- */

static void answers_a_get(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	say(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 200);
	CHECK_STR(a.body, "hello");
	CHECK_STR(field_of(&a, "Content-Type"), "text/plain");
	CHECK(strlen(field_of(&a, "X-Request-Id")) > 20);
	CHECK(!field_of(&a, "Connection"));
	stop();
}

static void gives_handlers_params_query_headers_and_context(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	say(fd, "GET /describe/x%20y/z?q=1%2B+2 HTTP/1.1\r\n" HOST "X-Test: t\r\n\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 201);
	CHECK_STR(a.body, "/describe/x%20y/z?q=1%2B+2|x y|z|1+ 2|t|open");
	CHECK_STR(field_of(&a, "X-Good"), "yes");
	CHECK(!field_of(&a, "X-Bad") && !field_of(&a, "Set-Cookie") && !field_of(&a, "X Bad"));
	stop();
}

static void answers_204_without_body_or_type(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	say(fd, "DELETE /nothing HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 204);
	CHECK(!field_of(&a, "Content-Length") && !field_of(&a, "Content-Type"));
	CHECK_INT(beyond.len, 0);
	stop();
}

static void answers_head_like_get_without_the_body(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, "HEAD /hello HTTP/1.1\r\n" HOST "\r\n");
	hear_to(fd, &a, true);
	CHECK_INT(a.status, 200);
	CHECK_STR(field_of(&a, "Content-Length"), "5");
	say(fd, "HEAD /nowhere HTTP/1.1\r\n" HOST "\r\n");
	hear_to(fd, &b, true);
	CHECK_INT(b.status, 404);
	turn_for(5);
	CHECK_INT(beyond.len, 0);
	stop();
}

static void answers_options_with_allow(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, "OPTIONS /guarded HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 204);
	CHECK_STR(field_of(&a, "Allow"), "GET, HEAD, POST, OPTIONS");
	say(fd, "OPTIONS /nowhere HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &b);
	CHECK_INT(b.status, 404);
	stop();
}

static void tells_unknown_paths_from_unknown_methods(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b, c;
	say(fd, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 404);
	CHECK(strstr(a.body, "{\"error\":{\"code\":\"route_not_found\",\"message\":\""));
	say(fd, "PUT /hello HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &b);
	CHECK_INT(b.status, 405);
	CHECK_STR(field_of(&b, "Allow"), "GET, HEAD, OPTIONS");
	CHECK(strstr(b.body, "\"method_not_allowed\""));
	say(fd, "BREW /hello HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &c);
	CHECK_INT(c.status, 405);
	stop();
}

static void refuses_paths_that_could_be_read_in_two_ways(void)
{
	static const char *const paths[] = {"/%2e%2e/hello", "/./hello", "//hello", "/x/../hello",
		"/hello%2f", "/hello%00", "/hello%zz", "/hello?a=%"};
	start(&generous);
	autoclose int fd = dial();
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		autoanswer a;
		char request[128];
		snprintf(request, sizeof request, "GET %s HTTP/1.1\r\n" HOST "\r\n", paths[i]);
		say(fd, request);
		hear(fd, &a);
		CHECK_INT(a.status, 400);
	}
	CHECK_INT(seen.handled, 0);
	stop();
}

static void names_the_request_in_internal_errors(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	say(fd, "GET /fault HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 500);
	char wanted[640];
	snprintf(wanted, sizeof wanted,
		"{\"error\":{\"code\":\"internal\",\"message\":\"broken \\\"badly\\\"\","
		"\"requestId\":\"%s\"}}",
		field_of(&a, "X-Request-Id"));
	CHECK_STR(a.body, wanted);
	stop();
}

static void counts_what_it_does(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	say(fd, "GET /nowhere HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &b);
	struct http_counters counters;
	http_server_counters(fixture.server, &counters);
	CHECK(counters.connections_open == 1 && counters.connections_total == 1);
	CHECK(counters.requests_total == 2);
	CHECK(counters.responses_by_class[2] == 1 && counters.responses_by_class[4] == 1);
	stop();
}

/* ---- bodies ---- */

static void reads_a_body_of_known_length(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");
	hear(fd, &a);
	CHECK_STR(a.body, "hello");
	say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n");
	hear(fd, &b);
	CHECK_INT(b.status, 200);
	CHECK_INT(b.body_len, 0);
	stop();
}

static void reads_requests_cut_at_every_byte(void)
{
	static const char request[] =
		"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
		"5\r\nhello\r\nA\r\n, world...\r\n0\r\n\r\n"
		"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc";
	start(&generous);
	autoclose int fd = dial();
	for (size_t cut = 1; cut < sizeof request - 1; cut++) {
		autoanswer a, b;
		say_n(fd, request, cut);
		turn();
		say_n(fd, request + cut, sizeof request - 1 - cut);
		hear(fd, &a);
		CHECK_STR(a.body, "hello, world...");
		hear(fd, &b);
		CHECK_STR(b.body, "abc");
	}
	for (size_t i = 0; i < sizeof request - 1; i++) {
		say_n(fd, request + i, 1);
		turn();
	}
	autoanswer a, b;
	hear(fd, &a);
	CHECK_STR(a.body, "hello, world...");
	hear(fd, &b);
	CHECK_STR(b.body, "abc");
	stop();
}

static void reads_a_body_up_to_the_limit(void)
{
	enum {
		SIZE = 1 << 20
	};
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	autofree char *data = malloc(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (char)(i * 7 + i / 251);
	say(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1048576\r\n\r\n");
	say_n(fd, data, SIZE);
	hear(fd, &a);
	CHECK_INT(a.status, 200);
	CHECK(a.body_len == SIZE && memcmp(a.body, data, SIZE) == 0);
	stop();
}

static void refuses_a_long_body_before_it_comes(void)
{
	start(&generous);
	ANSWERED_AND_CLOSED("POST /small HTTP/1.1\r\n" HOST "Content-Length: 11\r\n\r\n", 413);
	ANSWERED_AND_CLOSED("POST /small HTTP/1.1\r\n" HOST
			    "Content-Length: 18446744073709551615\r\n\r\n",
		413);
	ANSWERED_AND_CLOSED(
		"POST /small HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nb\r\n", 413);
	ANSWERED_AND_CLOSED("POST /small HTTP/1.1\r\n" HOST
			    "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n6\r\n",
		413);
	CHECK_INT(seen.handled, 0);
	stop();
}

static void refuses_a_body_where_the_route_takes_none(void)
{
	start(&generous);
	ANSWERED_AND_CLOSED("GET /hello HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx", 413);
	ANSWERED_AND_CLOSED(
		"GET /hello HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\n", 413);
	stop();
}

static void lets_the_client_see_an_early_refusal(void)
{
	enum {
		SIZE = 4 << 20
	};
	start(&generous);
	autoclose int fd = dial();
	autofree char *data = calloc(1, SIZE);
	autobuf in = {0};
	say(fd, "POST /small HTTP/1.1\r\n" HOST "Content-Length: 4194304\r\n\r\n");
	say_n(fd, data, SIZE);
	CHECK_INT(hear_all(fd, &in), HEARD_END);
	CHECK(strncmp(in.data, "HTTP/1.1 413 ", 13) == 0);
	stop();
}

static void answers_expect_only_when_the_body_is_wanted(void)
{
#define EXPECT HOST "Expect: 100-continue\r\n"
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, "POST /echo HTTP/1.1\r\n" EXPECT "Content-Length: 5\r\n\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 100);
	CHECK_INT(seen.handled, 0);
	say(fd, "hello");
	hear(fd, &b);
	CHECK_INT(b.status, 200);
	CHECK_STR(b.body, "hello");
	ANSWERED_AND_CLOSED("POST /small HTTP/1.1\r\n" EXPECT "Content-Length: 11\r\n\r\n", 413);
	ANSWERED_AND_CLOSED("POST /nowhere HTTP/1.1\r\n" EXPECT "Content-Length: 1\r\n\r\n", 404);
	ANSWERED_AND_CLOSED("POST /guarded HTTP/1.1\r\n" EXPECT "Content-Length: 1\r\n\r\n", 401);
	ANSWERED_AND_CLOSED("POST /echo HTTP/1.1\r\n" HOST
			    "Expect: the-unexpected\r\nContent-Length: 1\r\n\r\n",
		417);
	stop();
}

static void admits_before_it_reads_the_body(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	ANSWERED_AND_CLOSED("POST /guarded HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", 401);
	CHECK_INT(seen.handled, 0);
	say(fd, "GET /guarded HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 401);
	say(fd, "POST /guarded HTTP/1.1\r\n" HOST
		"Authorization: alice\r\nContent-Length: 1\r\n\r\nx");
	hear(fd, &b);
	CHECK_STR(b.body, "alice");
	CHECK_INT(seen.admitted, 3);
	stop();
}

/* ---- refusals ---- */

/*
 * Each is followed by a whole request: answered_and_closed sees to it that nobody takes that up.
 * For comparison, node 20.20's server answers 200 to "Chunked", two Hosts, an empty line in front,
 * the absolute form, the fragment, HTTP/2.0, the chunk extension and the trailer, and 400 to the
 * rest.
 */
static void refuses_what_smugglers_send(void)
{
#define TO_ECHO "POST /echo HTTP/1.1\r\n" HOST
	start(&generous);
	ANSWERED_AND_CLOSED(TO_ECHO
		"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" NEXT,
		400);
	ANSWERED_AND_CLOSED(TO_ECHO
		"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" NEXT,
		400);
	ANSWERED_AND_CLOSED(TO_ECHO "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Content-Length: 0, 5\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Content-Length: +0\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Content-Length: -1\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Content-Length : 0\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Transfer-Encoding: xchunked\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Transfer-Encoding: chunked, chunked\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Transfer-Encoding: Chunked\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "Transfer-Encoding:\r\n chunked\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "X: y\nTransfer-Encoding: chunked\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "X: y\rTransfer-Encoding: chunked\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO "X: y\0\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(TO_ECHO HOST "\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED("POST /echo HTTP/1.1\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED("\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED("GET http://other/hello HTTP/1.1\r\n" HOST "\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED("GET /hello#x HTTP/1.1\r\n" HOST "\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED("GET /hello HTTP/1.1\nHost: x\n\n" NEXT, 400);
	ANSWERED_AND_CLOSED("GET /hello HTTP/2.0\r\n" HOST "\r\n" NEXT, 505);
#define CHUNKED TO_ECHO "Transfer-Encoding: chunked\r\n\r\n"
	ANSWERED_AND_CLOSED(CHUNKED "1;ext\r\nx\r\n0\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(CHUNKED "0\r\nTrailer: x\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(CHUNKED "-1\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(CHUNKED "10000000000000001\r\nx\r\n0\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(CHUNKED "1\nx\r\n0\r\n\r\n" NEXT, 400);
	ANSWERED_AND_CLOSED(CHUNKED "1\r\nxx\r\n0\r\n\r\n" NEXT, 400);
	CHECK_INT(seen.handled, 0);
	stop();
}

static void refuses_heads_that_are_too_large(void)
{
	autobuf request = {0};
	start(&generous);
	buf_append_str(&request, "GET /");
	for (int i = 0; i < 8192; i++)
		buf_append_char(&request, 'a');
	buf_append_str(&request, " HTTP/1.1\r\n" HOST "\r\n");
	answered_and_closed(request.data, request.len, 414);
	request.len = 0;
	buf_append_str(&request, "GET /hello HTTP/1.1\r\n" HOST "X: ");
	for (int i = 0; i < 32768; i++)
		buf_append_char(&request, 'a');
	answered_and_closed(request.data, request.len, 431);
	request.len = 0;
	buf_append_str(&request, "GET /hello HTTP/1.1\r\n" HOST);
	for (int i = 0; i < 100; i++)
		buf_append_str(&request, "X: y\r\n");
	buf_append_str(&request, "\r\n");
	answered_and_closed(request.data, request.len, 431);
	stop();
}

/* ---- mounts ---- */

#define ALICE "Authorization: alice\r\n"

static void check_answer(int fd, const char *request, int status, const char *body)
{
	autoanswer a;
	say(fd, request);
	hear(fd, &a);
	if (a.status != status || strcmp(a.body, body) != 0)
		check_fail(__FILE__, __LINE__, request, a.text.data, body);
}

static void hands_over_the_rest_of_a_path(void)
{
	start(&generous);
	autoclose int fd = dial();
	check_answer(fd, "GET /dialect/x%20y/files/a%20b/c%2bd/ HTTP/1.1\r\n" HOST ALICE "\r\n",
		200, "GET known|x y|a b/c+d/");
	check_answer(
		fd, "GET /dialect/x/files/ HTTP/1.1\r\n" HOST ALICE "\r\n", 200, "GET known|x|");
	check_answer(fd, "GET /dialect/x/raw/a%20b//%2F../%zz?%&q=1 HTTP/1.1\r\n" HOST ALICE "\r\n",
		200, "GET known|x|a%20b//%2F../%zz?%&q=1");
	check_answer(fd, "PROPFIND /dialect/x/raw/ HTTP/1.1\r\n" HOST ALICE "\r\n", 200,
		"PROPFIND any|x|");
	/* What is decoded is decoded once, and is a path that nobody could understand differently.
	 */
	check_answer(fd, "GET /dialect/x/files/%252e%252e HTTP/1.1\r\n" HOST ALICE "\r\n", 200,
		"GET known|x|%2e%2e");
	check_answer(fd, "GET /dialect/x/files/%00 HTTP/1.1\r\n" HOST ALICE "\r\n", 400,
		"dialect: invalid_request");
	check_answer(fd, "GET /dialect/x/files/a/%2e%2e/b HTTP/1.1\r\n" HOST ALICE "\r\n", 400,
		"dialect: invalid_request");
	stop();
}

static void answers_errors_below_a_mount_in_its_own_form(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a;
	check_answer(fd, "GET /dialect/x/files/a HTTP/1.1\r\n" HOST "\r\n", 401,
		"dialect: unauthorized");
	check_answer(fd, "GET /dialect/x/guarded HTTP/1.1\r\n" HOST "\r\n", 405,
		"dialect: method_not_allowed");
	say(fd, "GET /dialect/x/nothing HTTP/1.1\r\n" HOST "\r\n");
	hear(fd, &a);
	CHECK_INT(a.status, 410);
	CHECK_STR(field_of(&a, "Content-Type"), "text/dialect");
	CHECK_STR(field_of(&a, "X-Dialect"), "yes");
	CHECK_STR(a.body, "dialect: route_not_found");
	/* Those that end the connection, before a handler and behind it. */
	ANSWERED_AND_CLOSED("POST /dialect/x/guarded HTTP/1.1\r\n" HOST ALICE
			    "Content-Length: 11\r\n\r\n",
		413);
	ANSWERED_AND_CLOSED("PUT /dialect/x/upload HTTP/1.1\r\n" HOST ALICE
			    "Transfer-Encoding: chunked\r\n\r\nb\r\n",
		413);
	CHECK_INT(seen.sink_aborted, 1);
	autoclose int other = dial();
	check_answer(other,
		"PUT /dialect/x/upload HTTP/1.1\r\n" HOST ALICE "Content-Length: 11\r\n\r\n", 413,
		"dialect: body_too_large");
	stop();
}

static void lets_a_mount_claim_requests_by_their_headers(void)
{
	start(&generous);
	autoclose int fd = dial();
	autoanswer a, b;
	say(fd, "GET /raw/hello HTTP/1.1\r\n" HOST ALICE "X-Claim: 1\r\n\r\n");
	hear(fd, &a);
	CHECK_STR(a.body, "GET known|(null)|hello");
	say(fd, "GET /hello HTTP/1.1\r\n" HOST "X-Claim: 1\r\n\r\n");
	hear(fd, &b);
	CHECK_INT(b.status, 410);
	CHECK_STR(field_of(&b, "X-Dialect"), "claimed");
	check_answer(fd, NEXT, 200, "hello");
	stop();
}

static const struct check_test tests[] = {
	TEST(answers_a_get),
	TEST(gives_handlers_params_query_headers_and_context),
	TEST(answers_204_without_body_or_type),
	TEST(answers_head_like_get_without_the_body),
	TEST(answers_options_with_allow),
	TEST(tells_unknown_paths_from_unknown_methods),
	TEST(refuses_paths_that_could_be_read_in_two_ways),
	TEST(names_the_request_in_internal_errors),
	TEST(counts_what_it_does),
	TEST(reads_a_body_of_known_length),
	TEST(reads_requests_cut_at_every_byte),
	TEST(reads_a_body_up_to_the_limit),
	TEST(refuses_a_long_body_before_it_comes),
	TEST(refuses_a_body_where_the_route_takes_none),
	TEST(lets_the_client_see_an_early_refusal),
	TEST(answers_expect_only_when_the_body_is_wanted),
	TEST(admits_before_it_reads_the_body),
	TEST(refuses_what_smugglers_send),
	TEST(refuses_heads_that_are_too_large),
	TEST(hands_over_the_rest_of_a_path),
	TEST(answers_errors_below_a_mount_in_its_own_form),
	TEST(lets_a_mount_claim_requests_by_their_headers),
};

int main(void)
{
	return run_http_tests(tests, ARRAY_LEN(tests));
}
