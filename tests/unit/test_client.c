/*
 * The client library and the CLI's option parser. The response parser is fed by hand, at every
 * split; the library as a whole talks to a scripted server: a thread that takes one request, sends
 * prepared bytes in pieces of a given size, and hangs up.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "bunker.h"
#include "check.h"
#include "cli/options.h"
#include "client/lines.h"
#include "client/response.h"
#include "client/transport.h"

struct message {
	const char *bytes;
	int status;
	const char *body;
	bool ends_by_close;
};

static const struct message good_messages[] = {
	{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, "hello", false},
	{"HTTP/1.1 200\r\ncontent-length:0\r\n\r\n", 200, "", false},
	{"HTTP/1.1 204 No Content\r\nX: y\r\n\r\n", 204, "", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n",
		200, "hello", false},
	{"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked \r\n\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
		200, "0123456789", false},
	{"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno", 404,
		"no", false},
	{"HTTP/1.0 200 OK\r\n\r\nuntil the end", 200, "until the end", true},
};

static const char *const bad_messages[] = {
	"HTTP/2 200 OK\r\n",
	"SSH-2.0-OpenSSH_9.2\r\n",
	"HTTP/1.1 99 Low\r\n",
	"HTTP/1.1 20x No\r\n",
	"HTTP/1.1 200 OK\n",
	"HTTP/1.1 200 OK\r\nA: bcd\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n",
	"HTTP/1.1 200 OK\r\nContent-Length :1\r\n",
	"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n",
	"HTTP/1.1 200 OK\r\nno colon\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n",
};

static int keep_body(void *arg, int status, const char *data, size_t len)
{
	buf_append(arg, data, len);
	return 0;
}

/* Feeds the bytes in two parts and says whether the message came out whole. */
static bool survives_split(const struct message *m, size_t at)
{
	autobuf body = {0};
	struct response r;
	size_t len = strlen(m->bytes);
	client_response_init(&r, keep_body, &body);
	int result = client_response_feed(&r, m->bytes, at, NULL);
	if (result == 0)
		result = client_response_feed(&r, m->bytes + at, len - at, NULL);
	if (result == 0 && m->ends_by_close)
		result = client_response_end(&r, NULL);
	bool whole = result == 0 && r.state == RESPONSE_DONE && r.status == m->status &&
		     body.len == strlen(m->body) &&
		     (body.len == 0 || memcmp(body.data, m->body, body.len) == 0);
	client_response_finish(&r);
	return whole;
}

static void reads_a_response_split_at_every_byte(void)
{
	for (size_t i = 0; i < ARRAY_LEN(good_messages); i++)
		for (size_t at = 0; at <= strlen(good_messages[i].bytes); at++)
			CHECK(survives_split(&good_messages[i], at));
}

static void reads_a_response_byte_by_byte(void)
{
	for (size_t i = 0; i < ARRAY_LEN(good_messages); i++) {
		autobuf body = {0};
		struct response r;
		client_response_init(&r, keep_body, &body);
		for (const char *p = good_messages[i].bytes; *p; p++)
			CHECK(client_response_feed(&r, p, 1, NULL) == 0);
		CHECK(client_response_end(&r, NULL) == 0);
		CHECK(body.len == strlen(good_messages[i].body));
		client_response_finish(&r);
	}
}

static void notices_a_response_cut_at_any_byte(void)
{
	for (size_t i = 0; i < ARRAY_LEN(good_messages); i++) {
		const struct message *m = &good_messages[i];
		if (m->ends_by_close)
			continue;
		for (size_t len = 0; len < strlen(m->bytes); len++) {
			autobuf body = {0};
			struct response r;
			struct bunker_error e;
			client_response_init(&r, keep_body, &body);
			CHECK(client_response_feed(&r, m->bytes, len, &e) == 0);
			CHECK(client_response_end(&r, &e) < 0);
			CHECK_STR(e.code, BUNKER_CONNECTION_LOST);
			client_response_finish(&r);
		}
	}
}

static void refuses_responses_whose_end_is_in_doubt(void)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_messages); i++) {
		autobuf body = {0};
		struct response r;
		struct bunker_error e = {0};
		client_response_init(&r, keep_body, &body);
		int result = client_response_feed(&r, bad_messages[i], strlen(bad_messages[i]), &e);
		CHECK(result < 0);
		CHECK_STR(e.code, BUNKER_INVALID_RESPONSE);
		client_response_finish(&r);
	}
}

static void refuses_an_endless_header_line(void)
{
	struct response r;
	struct bunker_error e = {0};
	int result = 0;
	client_response_init(&r, keep_body, NULL);
	for (int i = 0; i <= RESPONSE_MAX_LINE && result == 0; i++)
		result = client_response_feed(&r, "x", 1, &e);
	CHECK(result < 0);
	CHECK_STR(e.code, BUNKER_INVALID_RESPONSE);
	client_response_finish(&r);
}

static int join_line(void *arg, const char *line, size_t len, struct bunker_error *e)
{
	buf_append_char(arg, '<');
	buf_append(arg, line, len);
	buf_append_char(arg, '>');
	return 0;
}

static void finds_lines_split_at_every_byte(void)
{
	static const char text[] = "one\n\ntwo\nthree\nrest";
	static const char expected[] = "<one><two><three>";
	for (size_t at = 0; at < strlen(text); at++) {
		autobuf joined = {0};
		struct lines l = {.take = join_line, .arg = &joined};
		CHECK(client_lines_feed(&l, text, at, NULL) == 0);
		CHECK(client_lines_feed(&l, text + at, strlen(text) - at, NULL) == 0);
		CHECK(joined.len == strlen(expected));
		CHECK(memcmp(joined.data, expected, joined.len) == 0);
		client_lines_finish(&l);
	}
}

static void refuses_an_overlong_line(void)
{
	autobuf joined = {0};
	struct lines l = {.take = join_line, .arg = &joined};
	struct bunker_error e = {0};
	autofree char *piece = malloc(1 << 20);
	memset(piece, 'x', 1 << 20);
	int result = 0, pieces = 0;
	while (result == 0 && pieces < 20) {
		result = client_lines_feed(&l, piece, 1 << 20, &e);
		pieces++;
	}
	CHECK(pieces == 17);
	CHECK_STR(e.code, BUNKER_INVALID_RESPONSE);
	client_lines_finish(&l);
}

static void reads_urls(void)
{
	static const struct {
		const char *text, *host, *port, *prefix;
	} urls[] = {
		{"http://127.0.0.1:2468", "127.0.0.1", "2468", ""},
		{"HTTP://example.com", "example.com", "80", ""},
		{"http://[::1]:99/", "::1", "99", ""},
		{"http://h:1/a/b/", "h", "1", "/a/b"},
	};
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct transport_url url;
		CHECK(client_transport_parse_url(urls[i].text, &url, NULL) == 0);
		CHECK_STR(url.host, urls[i].host);
		CHECK_STR(url.port, urls[i].port);
		CHECK_STR(url.prefix, urls[i].prefix);
	}
}

static void refuses_bad_urls(void)
{
	static const char *const urls[] = {"", "127.0.0.1", "ftp://h", "http://", "http://:1",
		"http://h:", "http://h:1x", "http://h:123456", "http://[::1", "http://[::1]x",
		"http://user@h", "http://h/?q", "http://h\r\nX: y", "http://h/a b"};
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct transport_url url;
		struct bunker_error e = {0};
		CHECK(client_transport_parse_url(urls[i], &url, &e) < 0);
		CHECK_STR(e.code, BUNKER_INVALID_URL);
	}
}

static void takes_https_with_its_own_port(void)
{
	struct transport_url url;
	struct bunker_error e;
	CHECK(client_transport_parse_url("https://example.com/x", &url, &e) == 0);
	CHECK(url.is_tls);
	CHECK_STR(url.port, "443");
	CHECK(client_transport_parse_url("HTTPS://[::1]:7443", &url, &e) == 0);
	CHECK(url.is_tls);
	CHECK_STR(url.host, "::1");
	CHECK_STR(url.port, "7443");
}

static void refuses_a_key_that_would_split_the_head(void)
{
	struct bunker *b;
	struct bunker_error e;
	CHECK(bunker_open(&b, BUNKER_DEFAULT_URL, "key\r\nX: y", &e) < 0);
	CHECK(bunker_open(&b, BUNKER_DEFAULT_URL, "", &e) < 0);
}

struct script {
	const char *answer;
	size_t answer_len;
	size_t piece;      /* bytes per write */
	bool ignores_body; /* answers as soon as the head is there, and hangs up */

	int listen_fd;
	char url[64];
	struct buf request;
	pthread_t thread;
};

static bool request_is_complete(const struct script *s)
{
	const char *end =
		s->request.len ? memmem(s->request.data, s->request.len, "\r\n\r\n", 4) : NULL;
	if (!end)
		return false;
	const char *length = memmem(s->request.data, s->request.len, "Content-Length: ", 16);
	size_t body = length && !s->ignores_body ? strtoul(length + 16, NULL, 10) : 0;
	return s->request.len >= (size_t)(end + 4 - s->request.data) + body;
}

static void *play(void *arg)
{
	struct script *s = arg;
	const int on = 1;
	autoclose int fd = accept(s->listen_fd, NULL, NULL);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	while (!request_is_complete(s)) {
		char data[4096];
		ssize_t n = recv(fd, data, sizeof data, 0);
		if (n <= 0)
			return NULL;
		buf_append(&s->request, data, (size_t)n);
	}
	for (size_t sent = 0; sent < s->answer_len;) {
		size_t left = s->answer_len - sent;
		ssize_t n =
			send(fd, s->answer + sent, left < s->piece ? left : s->piece, MSG_NOSIGNAL);
		if (n <= 0)
			return NULL;
		sent += (size_t)n;
	}
	return NULL;
}

static struct bunker *script_start(struct script *s)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof address;
	struct bunker *b = NULL;
	s->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(s->listen_fd, (struct sockaddr *)&address, sizeof address) < 0 ||
		listen(s->listen_fd, 1) < 0 ||
		getsockname(s->listen_fd, (struct sockaddr *)&address, &size) < 0)
		abort();
	snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", ntohs(address.sin_port));
	if (!s->answer_len)
		s->answer_len = strlen(s->answer);
	if (!s->piece)
		s->piece = s->answer_len;
	if (pthread_create(&s->thread, NULL, play, s) != 0 ||
		bunker_open(&b, s->url, "key", NULL) < 0)
		abort();
	return b;
}

static void script_end(struct script *s, struct bunker *b)
{
	bunker_close(b);
	pthread_join(s->thread, NULL);
	close(s->listen_fd);
	buf_finish(&s->request);
}

static bool was_asked(const struct script *s, const char *text)
{
	return s->request.len && memmem(s->request.data, s->request.len, text, strlen(text));
}

#define NDJSON_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n"
#define EXIT_7                                                                                     \
	"{\"type\":\"exit\",\"executionId\":\"x\",\"sandboxId\":\"s\",\"status\":\"completed\","   \
	"\"exitCode\":7,\"timedOut\":false,\"durationMs\":1.5}\n"

static const char stream_answer[] =
	NDJSON_HEAD "{\"type\":\"start\",\"executionId\":\"x\",\"sandboxId\":\"s\",\"pid\":3}\n"
		    "{\"type\":\"stdout\",\"offset\":0,\"data\":\"YQD/Cg==\"}\n"
		    "{\"type\":\"from-the-future\",\"data\":[1,2]}\n"
		    "{\"type\":\"stderr\",\"offset\":0,\"data\":\"ZXJy\"}\n"
		    "{\"type\":\"stdout\",\"offset\":4,\"data\":\"Yg==\"}\n" EXIT_7;

static const char *const true_argv[] = {"true", "-x", NULL};

static void collects_exact_bytes_whatever_the_pieces(void)
{
	static const size_t pieces[] = {1, 2, 3, 7, 64, 100000};
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		struct script s = {.answer = stream_answer, .piece = pieces[i]};
		struct bunker *b = script_start(&s);
		struct bunker_result result;
		CHECK(bunker_exec(b, "id", &(struct bunker_exec_options){.argv = true_argv},
			      &result, NULL) == 0);
		CHECK(result.out_size == 5 && memcmp(result.out, "a\0\377\nb", 5) == 0);
		CHECK(result.err_size == 3 && memcmp(result.err, "err", 3) == 0);
		CHECK(result.exit_code == 7 && result.signal == 0 && !result.timed_out);
		CHECK_STR(result.execution_id, "x");
		bunker_result_finish(&result);
		script_end(&s, b);
	}
}

static void asks_as_the_api_wants_it(void)
{
	struct script s = {.answer = stream_answer};
	struct bunker *b = script_start(&s);
	struct bunker_result result;
	const struct bunker_pair early[] = {{"A", "1"}, {"B", "1"}}, late[] = {{"B", "2"}};
	const struct bunker_create_options sandbox = {
		.memory = "1Gi", .idle_timeout = "5m", .env = early, .env_count = 2};
	const struct bunker_exec_options options = {.argv = true_argv,
		.timeout = "9s",
		.input = "in",
		.input_size = 2,
		.env = late,
		.env_count = 1};
	CHECK(bunker_run(b, &sandbox, &options, &result, NULL) == 0);
	bunker_result_finish(&result);
	CHECK(was_asked(&s, "POST /v1/run HTTP/1.1\r\n"));
	CHECK(was_asked(&s, "\r\nAuthorization: Bearer key\r\n"));
	CHECK(was_asked(&s, "\r\nAccept: application/x-ndjson\r\n"));
	CHECK(was_asked(&s, "\"command\":[\"true\",\"-x\"]"));
	CHECK(was_asked(&s, "\"resources\":{\"memory\":\"1Gi\"}"));
	CHECK(was_asked(&s, "\"timeout\":{\"idle\":\"5m\",\"execution\":\"9s\"}"));
	CHECK(was_asked(&s, "\"env\":{\"A\":\"1\",\"B\":\"2\"}"));
	CHECK(was_asked(&s, "\"stdin\":\"aW4=\""));
	script_end(&s, b);
}

static void escapes_what_goes_into_a_path(void)
{
	struct script s = {.answer = "HTTP/1.1 204 No Content\r\n\r\n"};
	struct bunker *b = script_start(&s);
	CHECK(bunker_destroy(b, "a/../b c\r\n", NULL) == 0);
	CHECK(was_asked(&s, "DELETE /v1/sandboxes/a%2F..%2Fb%20c%0D%0A HTTP/1.1\r\n"));
	script_end(&s, b);
}

static void passes_the_servers_error_on(void)
{
	struct script s = {.answer =
				   "HTTP/1.1 400 Bad Request\r\n\r\n"
				   "{\"error\":{\"code\":\"invalid_field\",\"message\":\"no good\","
				   "\"field\":\"name\"}}"};
	struct bunker *b = script_start(&s);
	struct bunker_sandbox sandbox;
	struct bunker_error e;
	CHECK(bunker_create(b, NULL, &sandbox, &e) < 0);
	CHECK_INT(e.http_status, 400);
	CHECK_STR(e.code, "invalid_field");
	CHECK_STR(e.field, "name");
	CHECK_STR(e.message, "no good");
	script_end(&s, b);
}

static void passes_an_error_inside_a_stream_on(void)
{
	struct script s = {.answer = NDJSON_HEAD "{\"type\":\"error\",\"error\":{\"code\":"
						 "\"not_running\",\"message\":\"it died\"}}\n"};
	struct bunker *b = script_start(&s);
	struct bunker_result result;
	struct bunker_error e;
	CHECK(bunker_exec(b, "id", &(struct bunker_exec_options){.shell = "x"}, &result, &e) < 0);
	CHECK_STR(e.code, "not_running");
	CHECK_STR(e.message, "it died");
	script_end(&s, b);
}

static void hears_a_refusal_that_comes_before_the_body_is_read(void)
{
	struct script s = {
		.answer = "HTTP/1.1 413 Too Large\r\n\r\n"
			  "{\"error\":{\"code\":\"body_too_large\",\"message\":\"too big\"}}",
		.ignores_body = true};
	struct bunker *b = script_start(&s);
	struct bunker_result result;
	struct bunker_error e = {0};
	autofree char *input = calloc(1, 4 << 20);
	const struct bunker_exec_options options = {
		.shell = "x", .input = input, .input_size = 4 << 20};
	CHECK(bunker_exec(b, "id", &options, &result, &e) < 0);
	/* The reset may overtake the answer; then the connection is what was lost. */
	CHECK(strcmp(e.code, "body_too_large") == 0 || strcmp(e.code, BUNKER_CONNECTION_LOST) == 0);
	script_end(&s, b);
}

static void tells_a_stream_without_an_end_from_success(void)
{
	struct script s = {
		.answer = stream_answer, .answer_len = sizeof stream_answer - 1 - strlen(EXIT_7)};
	struct bunker *b = script_start(&s);
	struct bunker_result result;
	struct bunker_error e;
	CHECK(bunker_exec(b, "id", &(struct bunker_exec_options){.shell = "x"}, &result, &e) < 0);
	CHECK_STR(e.code, BUNKER_CONNECTION_LOST);
	script_end(&s, b);
}

static int refuse_output(void *arg, enum bunker_stream stream, const void *data, size_t size)
{
	return -1;
}

static void stops_when_the_callback_says_so(void)
{
	struct script s = {.answer = stream_answer};
	struct bunker *b = script_start(&s);
	struct bunker_result result;
	struct bunker_error e;
	const struct bunker_exec_options options = {.shell = "x", .output = refuse_output};
	CHECK(bunker_exec(b, "id", &options, &result, &e) < 0);
	CHECK_STR(e.code, BUNKER_STOPPED);
	script_end(&s, b);
}

static void follows_a_list_with_unknown_fields(void)
{
	struct script s = {
		.answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
			  "44\r\n{\"sandboxes\":[{\"id\":\"a\",\"new\":[{}],\"executions\":3,"
			  "\"env\":{\"K\":\"V\"}}]}\r\n0\r\n\r\n"};
	struct bunker *b = script_start(&s);
	struct bunker_sandbox_list list;
	CHECK(bunker_list(b, &(struct bunker_list_options){.name = "a&b"}, &list, NULL) == 0);
	CHECK(was_asked(&s, "name=a%26b"));
	CHECK(list.count == 1 && strcmp(list.items[0].id, "a") == 0);
	CHECK(list.items[0].executions == 3 && *list.items[0].name == '\0');
	CHECK(list.items[0].env_count == 1 && strcmp(list.items[0].env[0].value, "V") == 0);
	bunker_sandbox_list_finish(&list);
	script_end(&s, b);
}

static void says_when_nothing_listens(void)
{
	struct script s = {.answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"};
	struct bunker *b = script_start(&s), *late = NULL;
	struct bunker_health health;
	struct bunker_error e;
	CHECK(bunker_health(b, &health, &e) == 0);
	bunker_health_finish(&health);
	script_end(&s, b);
	CHECK(bunker_open(&late, s.url, NULL, &e) == 0);
	CHECK(bunker_health(late, &health, &e) < 0);
	CHECK_STR(e.code, BUNKER_NO_SERVER);
	bunker_close(late);
}

struct parsed {
	bool flag;
	bool other;
	const char *text;
	int64_t number;
	struct option_list list;
};

static const struct option first_table[] = {
	{'f', "flag", NULL, OPTION_FLAG, offsetof(struct parsed, flag), ""},
	{'o', "other", NULL, OPTION_FLAG, offsetof(struct parsed, other), ""},
	{'t', "text", "TEXT", OPTION_STRING, offsetof(struct parsed, text), ""},
	{0},
};

static const struct option second_table[] = {
	{0, "number", "N", OPTION_NUMBER, offsetof(struct parsed, number), ""},
	{'l', "list", "ITEM", OPTION_LIST, offsetof(struct parsed, list), ""},
	{0},
};

static const struct option *const tables[] = {first_table, second_table, NULL};

struct line {
	char text[128];
	char *argv[16];
	char message[128];
	struct parsed parsed;
};

/* A command line written with blanks; the number of operands, or -1. */
static int parse(struct line *line, int operands_before_command, const char *text)
{
	int argc = 0;
	*line = (struct line){0};
	snprintf(line->text, sizeof line->text, "%s", text);
	for (char *word = strtok(line->text, " "); word; word = strtok(NULL, " "))
		line->argv[argc++] = word;
	const struct options_input input = {tables, operands_before_command, argc, line->argv};
	return cli_options_parse(&input, &line->parsed, line->message, sizeof line->message);
}

static void takes_every_spelling_of_an_option(void)
{
	static const char *const spellings[] = {"--text value --flag --other", "--text=value -f -o",
		"-t value -fo", "-tvalue -of", "-fot value", "-fotvalue"};
	for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
		struct line line;
		CHECK(parse(&line, OPTIONS_ANYWHERE, spellings[i]) == 0);
		CHECK(line.parsed.flag && line.parsed.other);
		CHECK_STR(line.parsed.text, "value");
	}
}

static void keeps_every_value_of_a_repeatable_option(void)
{
	struct line line;
	CHECK(parse(&line, OPTIONS_ANYWHERE, "-la --list b --list=c x --number=12") == 1);
	CHECK(line.parsed.list.count == 3 && line.parsed.number == 12);
	CHECK_STR(line.parsed.list.items[0], "a");
	CHECK_STR(line.parsed.list.items[2], "c");
	free(line.parsed.list.items);
}

static void finds_operands_among_the_options(void)
{
	struct line line;
	CHECK(parse(&line, OPTIONS_ANYWHERE, "a -f b --text t - -- --c") == 4);
	CHECK_STR(line.argv[0], "a");
	CHECK_STR(line.argv[1], "b");
	CHECK_STR(line.argv[2], "-");
	CHECK_STR(line.argv[3], "--c");
	CHECK(line.parsed.flag);
}

static void leaves_the_inner_commands_options_alone(void)
{
	struct line line;
	CHECK(parse(&line, 0, "-f ls -o -- x") == 4);
	CHECK(line.parsed.flag && !line.parsed.other && strcmp(line.argv[2], "--") == 0);
	CHECK(parse(&line, 1, "box -f ls -o") == 3);
	CHECK(line.parsed.flag && !line.parsed.other && strcmp(line.argv[1], "ls") == 0);
	CHECK(parse(&line, 1, "box -- -o") == 2);
	CHECK(!line.parsed.other && strcmp(line.argv[1], "-o") == 0);
}

static void refuses_what_no_table_has(void)
{
	static const struct {
		const char *line, *message;
	} bad[] = {
		{"--nope", "unknown option --nope"},
		{"--nope=1", "unknown option --nope"},
		{"--fla", "unknown option --fla; did you mean --flag?"},
		{"-fx", "unknown option -x"},
		{"--flag=1", "there is no value to give to --flag"},
		{"--text", "a value is missing after --text"},
		{"-t", "a value is missing after -t"},
		{"--number 0", "a positive number is needed after --number"},
		{"--number 1x", "a positive number is needed after --number"},
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct line line;
		CHECK(parse(&line, OPTIONS_ANYWHERE, bad[i].line) == -1);
		CHECK_STR(line.message, bad[i].message);
	}
}

static const struct check_test tests[] = {
	TEST(reads_a_response_split_at_every_byte),
	TEST(reads_a_response_byte_by_byte),
	TEST(notices_a_response_cut_at_any_byte),
	TEST(refuses_responses_whose_end_is_in_doubt),
	TEST(refuses_an_endless_header_line),
	TEST(finds_lines_split_at_every_byte),
	TEST(refuses_an_overlong_line),
	TEST(reads_urls),
	TEST(refuses_bad_urls),
	TEST(takes_https_with_its_own_port),
	TEST(refuses_a_key_that_would_split_the_head),
	TEST(collects_exact_bytes_whatever_the_pieces),
	TEST(asks_as_the_api_wants_it),
	TEST(escapes_what_goes_into_a_path),
	TEST(passes_the_servers_error_on),
	TEST(passes_an_error_inside_a_stream_on),
	TEST(hears_a_refusal_that_comes_before_the_body_is_read),
	TEST(tells_a_stream_without_an_end_from_success),
	TEST(stops_when_the_callback_says_so),
	TEST(follows_a_list_with_unknown_fields),
	TEST(says_when_nothing_listens),
	TEST(takes_every_spelling_of_an_option),
	TEST(keeps_every_value_of_a_repeatable_option),
	TEST(finds_operands_among_the_options),
	TEST(leaves_the_inner_commands_options_alone),
	TEST(refuses_what_no_table_has),
};

int main(void)
{
	return RUN_TESTS(tests);
}
