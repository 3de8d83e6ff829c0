/*
 * Heads, chunks, targets and routes, without sockets. Every head and every chunked body is also fed
 * cut in two at each of its bytes: the outcome must be the same.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "check.h"
#include "http/parser.h"
#include "http/target.h"

#define GET     "GET / HTTP/1.1\r\n"
#define POST    "POST / HTTP/1.1\r\n"
#define HOST    "Host: x\r\n"
#define REFUSED ERROR_INVALID_REQUEST

static struct http_head parsed;
static char *parsed_text;

/* Scans data[0..first) and then all of it, and parses; the code of the error, or ERROR_NONE. */
static enum error_code parse_cut(const char *data, size_t len, size_t first)
{
	struct http_head_scan scan = {0};
	struct error e = {0};
	int r = http_scan_head(&scan, data, first, &e);
	if (r == 0)
		r = http_scan_head(&scan, data, len, &e);
	if (r < 0)
		return e.code;
	CHECK(r == 1);
	free(parsed_text);
	parsed_text = malloc(scan.at);
	memcpy(parsed_text, data, scan.at);
	return http_parse_head(parsed_text, scan.at, &parsed, &e) < 0 ? e.code : ERROR_NONE;
}

static enum error_code parse_n(const char *data, size_t len)
{
	enum error_code whole = parse_cut(data, len, len);
	for (size_t cut = 0; cut < len; cut++)
		CHECK_INT(parse_cut(data, len, cut), whole);
	return whole;
}

#define PARSE(literal) parse_n("" literal, sizeof(literal) - 1)

/* ---- heads ---- */

static void accepts_a_plain_get(void)
{
	CHECK_INT(PARSE("GET /a/b?c=d HTTP/1.1\r\nHost: x\r\nAccept:  */* \t\r\nEmpty:\r\n\r\n"),
		ERROR_NONE);
	CHECK(parsed.method == HTTP_GET && parsed.method_known && parsed.keep_alive);
	CHECK(!parsed.http10 && !parsed.chunked && parsed.content_length == 0);
	CHECK_STR(parsed.target, "/a/b?c=d");
	CHECK_INT(parsed.field_count, 3);
	CHECK_STR(parsed.fields[1].name, "Accept");
	CHECK_STR(parsed.fields[1].value, "*/*");
	CHECK_STR(parsed.fields[2].value, "");
}

static void accepts_bodies_with_a_length_or_chunks(void)
{
	CHECK_INT(PARSE(POST HOST "content-LENGTH: 18446744073709551615\r\n\r\n"), ERROR_NONE);
	CHECK(parsed.content_length == UINT64_MAX && !parsed.chunked);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: chunked\r\n\r\n"), ERROR_NONE);
	CHECK(parsed.chunked && parsed.content_length == 0);
}

static void accepts_bytes_beyond_ascii_in_header_values_only(void)
{
	CHECK_INT(PARSE(GET HOST "X-Name: J\xc3\xbcrgen\r\n\r\n"), ERROR_NONE);
	CHECK_STR(parsed.fields[1].value, "J\xc3\xbcrgen");
	CHECK_INT(PARSE(GET HOST "X-N\xc3\xa4me: x\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE("GET /\xc3\xbc HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
}

static void tells_unknown_methods_from_malformed_ones(void)
{
	CHECK_INT(PARSE("BREW / HTTP/1.1\r\n" HOST "\r\n"), ERROR_NONE);
	CHECK(!parsed.method_known);
	CHECK_INT(PARSE("get / HTTP/1.1\r\n" HOST "\r\n"), ERROR_NONE);
	CHECK(!parsed.method_known);
	CHECK_INT(PARSE("G@T / HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE(" / HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
}

static void keeps_alive_unless_told_otherwise(void)
{
	CHECK_INT(PARSE(GET HOST "Connection: keep-alive, CLOSE\r\n\r\n"), ERROR_NONE);
	CHECK(!parsed.keep_alive);
	CHECK_INT(PARSE(GET HOST "Connection: foo\r\nConnection: close\r\n\r\n"), ERROR_NONE);
	CHECK(!parsed.keep_alive);
	CHECK_INT(PARSE(GET HOST "Connection: closely\r\n\r\n"), ERROR_NONE);
	CHECK(parsed.keep_alive);
	CHECK_INT(PARSE("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), ERROR_NONE);
	CHECK(!parsed.keep_alive && parsed.http10);
}

static void refuses_content_length_with_transfer_encoding(void)
{
	CHECK_INT(PARSE(POST HOST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
		REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n"),
		REFUSED);
}

static void refuses_two_content_lengths(void)
{
	CHECK_INT(PARSE(POST HOST "Content-Length: 3\r\nContent-Length: 3\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: 3\r\ncontent-length: 4\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: 3, 3\r\n\r\n"), REFUSED);
}

static void refuses_content_lengths_that_are_not_plain_digits(void)
{
	CHECK_INT(PARSE(POST HOST "Content-Length: +3\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: -3\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: 0x3\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: 3 4\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: 3.0\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length:\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: 18446744073709551616\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Content-Length: 99999999999999999999999\r\n\r\n"), REFUSED);
}

static void refuses_transfer_encodings_other_than_chunked(void)
{
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: gzip, chunked\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: chunked, identity\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: identity\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: xchunked\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: Chunked\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding:\r\n\r\n"), REFUSED);
	CHECK_INT(
		PARSE(POST HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
		REFUSED);
	CHECK_INT(PARSE("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), REFUSED);
}

static void refuses_bare_line_ends(void)
{
	CHECK_INT(PARSE("GET / HTTP/1.1\nHost: x\n\n"), REFUSED);
	CHECK_INT(PARSE("GET / HTTP/1.1\r\nHost: x\n\r\n"), REFUSED);
	CHECK_INT(PARSE("GET / HTTP/1.1\r\nHost: x\r\n\n"), REFUSED);
	CHECK_INT(PARSE("GET / HTTP/1.1\r\nHost: x\r\n\rX\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE("GET / HTTP/1.1\rHost: x\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE("GET / HTTP/1.1\r\r\nHost: x\r\n\r\n"), REFUSED);
}

static void refuses_an_empty_line_before_the_request(void)
{
	CHECK_INT(PARSE("\r\n" GET HOST "\r\n"), REFUSED);
}

static void refuses_folded_lines(void)
{
	CHECK_INT(PARSE(GET HOST "X-A: b\r\n c\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET HOST "X-A: b\r\n\tc: d\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET " " HOST "\r\n"), REFUSED);
}

static void refuses_a_space_before_the_colon(void)
{
	CHECK_INT(PARSE(POST HOST "Content-Length : 3\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(POST HOST "Transfer-Encoding\t: chunked\r\n\r\n"), REFUSED);
}

static void refuses_header_lines_without_a_name(void)
{
	CHECK_INT(PARSE(GET HOST ": x\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET HOST "no colon\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET HOST "X(Y): z\r\n\r\n"), REFUSED);
}

static void refuses_control_bytes(void)
{
	CHECK_INT(PARSE(GET HOST "X-A: b\0c\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET HOST "X-A: b\x01\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET HOST "X-A: b\x7f\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE("GET /\0 HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("\x16\x03\x01\x02\x00\x01"), REFUSED);
}

static void refuses_a_missing_repeated_or_malformed_host(void)
{
	CHECK_INT(PARSE(GET "\r\n"), REFUSED);
	CHECK_INT(PARSE(GET HOST HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE(GET "Host: a b\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET "Host: a,b\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET "Host: user@x\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET "Host: x/y\r\n\r\n"), REFUSED);
	CHECK_INT(PARSE(GET "Host: [::1]:2468\r\n\r\n"), ERROR_NONE);
	CHECK_INT(PARSE("GET / HTTP/1.0\r\n\r\n"), ERROR_NONE);
}

static void refuses_targets_that_are_not_a_path(void)
{
	CHECK_INT(PARSE("GET http://x/ HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET http://other/ HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("CONNECT x:80 HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("OPTIONS * HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET /a#b HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET /a b HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET /a\tb HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET  / HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET /  HTTP/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET / HTTP/1.1 \r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET /\r\n\r\n"), REFUSED);
}

static void refuses_other_versions(void)
{
	CHECK_INT(PARSE("GET / HTTP/2.0\r\n" HOST "\r\n"), ERROR_VERSION_NOT_SUPPORTED);
	CHECK_INT(PARSE("GET / HTTP/1.2\r\n" HOST "\r\n"), ERROR_VERSION_NOT_SUPPORTED);
	CHECK_INT(PARSE("GET / HTTP/0.9\r\n" HOST "\r\n"), ERROR_VERSION_NOT_SUPPORTED);
	CHECK_INT(PARSE("GET / HTTP/01.1\r\n" HOST "\r\n"), ERROR_VERSION_NOT_SUPPORTED);
	CHECK_INT(PARSE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), ERROR_VERSION_NOT_SUPPORTED);
	CHECK_INT(PARSE("GET / http/1.1\r\n" HOST "\r\n"), REFUSED);
	CHECK_INT(PARSE("GET / FTP/1.1\r\n" HOST "\r\n"), REFUSED);
}

static void refuses_other_expectations(void)
{
	CHECK_INT(PARSE(POST HOST "Expect: 100-Continue\r\n\r\n"), ERROR_NONE);
	CHECK(parsed.expects_continue);
	CHECK_INT(PARSE(POST HOST "Expect: 200-ok\r\n\r\n"), ERROR_EXPECTATION_FAILED);
	CHECK_INT(PARSE("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"), ERROR_NONE);
	CHECK(!parsed.expects_continue);
}

static enum error_code parse_long(const char *before, size_t filler, const char *after, size_t cut)
{
	autobuf text = {0};
	buf_append_str(&text, before);
	for (size_t i = 0; i < filler; i++)
		buf_append_char(&text, 'a');
	buf_append_str(&text, after);
	return parse_cut(text.data, text.len, cut < text.len ? cut : text.len);
}

static void limits_the_target_to_8_kib(void)
{
	const char *rest = " HTTP/1.1\r\n" HOST "\r\n";
	CHECK_INT(parse_long("GET /", HTTP_TARGET_MAX - 1, rest, 100), ERROR_NONE);
	CHECK_INT(parse_long("GET /", HTTP_TARGET_MAX, rest, 100), ERROR_URI_TOO_LONG);
	CHECK_INT(parse_long("GET /", HTTP_TARGET_MAX + 100, rest, 9000), ERROR_URI_TOO_LONG);
	CHECK_INT(parse_long("GET /", 100000, "", 100000), ERROR_URI_TOO_LONG);
}

static void limits_the_head_to_32_kib(void)
{
	size_t fixed = strlen(GET HOST "X: \r\n\r\n");
	const char *start = GET HOST "X: ";
	CHECK_INT(parse_long(start, HTTP_HEAD_MAX - fixed, "\r\n\r\n", 20000), ERROR_NONE);
	CHECK_INT(parse_long(start, HTTP_HEAD_MAX - fixed + 1, "\r\n\r\n", 20000),
		ERROR_HEADERS_TOO_LARGE);
	CHECK_INT(parse_long(start, 100000, "", 20000), ERROR_HEADERS_TOO_LARGE);
}

static void limits_the_headers_to_100(void)
{
	autobuf text = {0};
	buf_append_str(&text, GET HOST);
	for (int i = 1; i < HTTP_HEADERS_MAX; i++)
		buf_append_str(&text, "X-A: b\r\n");
	size_t len = text.len;
	buf_append_str(&text, "\r\n");
	CHECK_INT(parse_n(text.data, text.len), ERROR_NONE);
	text.len = len;
	buf_append_str(&text, "X-A: b\r\n\r\n");
	CHECK_INT(parse_n(text.data, text.len), ERROR_HEADERS_TOO_LARGE);
}

/* ---- chunks ---- */

/* 1: the body is complete and *used tells its length on the wire; 0: more is needed; -1: refused.
 */
static int unchunk(const char *data, size_t len, size_t cut, struct buf *body, size_t *used)
{
	struct http_chunks chunks = {0};
	size_t at = 0;
	while (at < len && chunks.state != HTTP_CHUNK_DONE) {
		struct http_piece piece;
		struct error e;
		size_t end = at < cut ? cut : len;
		ptrdiff_t n = http_take_chunk(&chunks, data + at, end - at, &piece, &e);
		if (n < 0)
			return -1;
		buf_append(body, piece.data, piece.len);
		at += (size_t)n;
	}
	*used = at;
	return chunks.state == HTTP_CHUNK_DONE;
}

static int unchunk_cut_everywhere(const char *data, size_t len, const char *wanted, size_t rest)
{
	autobuf whole = {0};
	size_t used = 0;
	int r = unchunk(data, len, len, &whole, &used);
	for (size_t cut = 0; cut < len; cut++) {
		autobuf body = {0};
		size_t cut_used = 0;
		CHECK_INT(unchunk(data, len, cut, &body, &cut_used), r);
		CHECK(r < 0 || (cut_used == used && body.len == whole.len));
		CHECK(r < 0 || body.len == 0 || memcmp(body.data, whole.data, body.len) == 0);
	}
	if (r == 1) {
		CHECK_INT(len - used, rest);
		buf_append_char(&whole, '\0');
		CHECK_STR(whole.data, wanted);
	}
	return r;
}

#define UNCHUNK(literal, wanted, rest)                                                             \
	unchunk_cut_everywhere("" literal, sizeof(literal) - 1, wanted, rest)

static void joins_chunks(void)
{
	CHECK_INT(UNCHUNK("5\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n\r\n", "hello world", 0), 1);
	CHECK_INT(UNCHUNK("00A\r\n0123456789\r\n0\r\n\r\nGET /", "0123456789", 5), 1);
	CHECK_INT(UNCHUNK("0\r\n\r\n", "", 0), 1);
	CHECK_INT(UNCHUNK("3\r\nabc\r\n000\r\n\r\n", "abc", 0), 1);
	CHECK_INT(UNCHUNK("5\r\nhel", "", 0), 0);
}

static void refuses_malformed_chunk_sizes(void)
{
	CHECK_INT(UNCHUNK("\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("g\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("-1\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("+1\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("0x1\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK(" 1\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("1 \r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("10000000000000000\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("ffffffffffffffff\r\n", "", 0), -1);
}

static void refuses_chunk_extensions_and_trailers(void)
{
	CHECK_INT(UNCHUNK("1;a=b\r\nx\r\n0\r\n\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("1;\nx\r\n0\r\n\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("0\r\nX-A: b\r\n\r\n", "", 0), -1);
}

static void refuses_chunks_with_wrong_line_ends(void)
{
	CHECK_INT(UNCHUNK("1\nx\r\n0\r\n\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("1\r\nx\n0\r\n\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("1\r\nxx\r\n0\r\n\r\n", "", 0), -1);
	CHECK_INT(UNCHUNK("1\r\nx\r\n0\r\n\n", "", 0), -1);
	CHECK_INT(UNCHUNK("1\rXx\r\n0\r\n\r\n", "", 0), -1);
}

/* ---- targets ---- */

static struct http_target target;
static char target_text[1024];

static bool split(const char *text)
{
	struct error e;
	snprintf(target_text, sizeof target_text, "%s", text);
	return http_split_target(target_text, &target, &e) == 0;
}

static void decodes_segments_after_splitting(void)
{
	CHECK(split("/a%20b/c+d/%7Bx%7D"));
	CHECK_INT(target.segment_count, 3);
	CHECK_STR(target.segments[0], "a b");
	CHECK_STR(target.segments[1], "c+d");
	CHECK_STR(target.segments[2], "{x}");
	CHECK(split("/%252e%252e"));
	CHECK_STR(target.segments[0], "%2e%2e");
}

static void tells_a_trailing_slash(void)
{
	CHECK(split("/a/"));
	CHECK_INT(target.segment_count, 2);
	CHECK_STR(target.segments[1], "");
	CHECK(split("/"));
	CHECK_INT(target.segment_count, 1);
}

static void refuses_paths_that_others_might_normalize(void)
{
	static const char *const paths[] = {"/..", "/a/../b", "/.", "/a/./b", "/%2e%2e/b", "/.%2E",
		"/%2e", "//", "//a", "/a//b", "/a%2fb", "/a%2Fb", "/%2f", "/a/..?x=y"};
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		if (split(paths[i]))
			check_fail(__FILE__, __LINE__, paths[i], "accepted", "refused");
	CHECK(split("/...") && split("/a.b/..c"));
}

static void refuses_bad_percent_escapes(void)
{
	static const char *const targets[] = {"/%00", "/a%", "/a%4", "/%zz", "/%4g", "/%-1",
		"/a?%00", "/a?b=%", "/a?b=%4", "/a?b=%zz", "/a?%2"};
	for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++)
		if (split(targets[i]))
			check_fail(__FILE__, __LINE__, targets[i], "accepted", "refused");
}

static void decodes_queries(void)
{
	CHECK(split("/a?x=1+2&&y=%26%3d&z&=w&x=a=b"));
	CHECK_INT(target.pair_count, 5);
	CHECK_STR(target.pairs[0].name, "x");
	CHECK_STR(target.pairs[0].value, "1 2");
	CHECK_STR(target.pairs[1].value, "&=");
	CHECK_STR(target.pairs[2].name, "z");
	CHECK_STR(target.pairs[2].value, "");
	CHECK_STR(target.pairs[3].name, "");
	CHECK_STR(target.pairs[4].value, "a=b");
	CHECK(split("/a?") && target.pair_count == 0);
	CHECK(split("/a?b?c=d/..") && target.pair_count == 1);
	CHECK_STR(target.pairs[0].name, "b?c");
}

static void limits_segments_and_query_pairs(void)
{
	autobuf text = {0};
	for (int i = 0; i < HTTP_SEGMENTS_MAX; i++)
		buf_append_str(&text, "/a");
	buf_append_char(&text, '?');
	for (int i = 0; i < HTTP_QUERY_MAX; i++)
		buf_append_str(&text, "b&");
	buf_append_char(&text, '\0');
	CHECK(split(text.data));
	CHECK_INT(target.pair_count, HTTP_QUERY_MAX);
	text.len--;
	buf_append(&text, "b", 2);
	CHECK(!split(text.data));
	memcpy(strchr(text.data, '?'), "/a", 3);
	CHECK(!split(text.data));
}

static const struct check_test tests[] = {
	TEST(accepts_a_plain_get),
	TEST(accepts_bodies_with_a_length_or_chunks),
	TEST(accepts_bytes_beyond_ascii_in_header_values_only),
	TEST(tells_unknown_methods_from_malformed_ones),
	TEST(keeps_alive_unless_told_otherwise),
	TEST(refuses_content_length_with_transfer_encoding),
	TEST(refuses_two_content_lengths),
	TEST(refuses_content_lengths_that_are_not_plain_digits),
	TEST(refuses_transfer_encodings_other_than_chunked),
	TEST(refuses_bare_line_ends),
	TEST(refuses_an_empty_line_before_the_request),
	TEST(refuses_folded_lines),
	TEST(refuses_a_space_before_the_colon),
	TEST(refuses_header_lines_without_a_name),
	TEST(refuses_control_bytes),
	TEST(refuses_a_missing_repeated_or_malformed_host),
	TEST(refuses_targets_that_are_not_a_path),
	TEST(refuses_other_versions),
	TEST(refuses_other_expectations),
	TEST(limits_the_target_to_8_kib),
	TEST(limits_the_head_to_32_kib),
	TEST(limits_the_headers_to_100),
	TEST(joins_chunks),
	TEST(refuses_malformed_chunk_sizes),
	TEST(refuses_chunk_extensions_and_trailers),
	TEST(refuses_chunks_with_wrong_line_ends),
	TEST(decodes_segments_after_splitting),
	TEST(tells_a_trailing_slash),
	TEST(refuses_paths_that_others_might_normalize),
	TEST(refuses_bad_percent_escapes),
	TEST(decodes_queries),
	TEST(limits_segments_and_query_pairs),
};

int main(void)
{
	int failed = RUN_TESTS(tests);
	free(parsed_text);
	return failed;
}
