/* Forms: parts however they are cut, names as clients write them, and what is refused. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "http/multipart.h"

#define TYPE "multipart/form-data; boundary=XX"

static struct {
	struct buf log; /* "[name|filename|type]content." for each part */
	bool pause;     /* after each event */
	int refuse_part;
	int parts;
} seen;

static int log_begin(void *arg, const struct multipart_part *part, struct error *e)
{
	CHECK(arg == &seen);
	if (++seen.parts == seen.refuse_part)
		return error_set(e, ERROR_QUOTA_EXCEEDED, "enough");
	buf_append_char(&seen.log, '[');
	buf_append_str(&seen.log, part->name);
	buf_append_char(&seen.log, '|');
	buf_append_str(&seen.log, part->filename ? part->filename : "-");
	buf_append_char(&seen.log, '|');
	buf_append_str(&seen.log, part->type ? part->type : "-");
	buf_append_char(&seen.log, ']');
	return seen.pause ? MULTIPART_PAUSE : MULTIPART_GO_ON;
}

static int log_data(void *arg, const char *data, size_t len, struct error *e)
{
	(void)e;
	CHECK(arg == &seen && len > 0);
	buf_append(&seen.log, data, len);
	return seen.pause ? MULTIPART_PAUSE : MULTIPART_GO_ON;
}

static int log_end(void *arg, struct error *e)
{
	(void)e;
	CHECK(arg == &seen);
	buf_append_char(&seen.log, '.');
	return seen.pause ? MULTIPART_PAUSE : MULTIPART_GO_ON;
}

static const struct multipart_events events = {log_begin, log_data, log_end};

static enum error_code push_all(struct multipart *m, const char *data, size_t len, struct error *e)
{
	size_t used = 0;
	for (int rounds = 0; used < len; rounds++) {
		ptrdiff_t n = multipart_push(m, data + used, len - used, e);
		if (n < 0)
			return e->code;
		CHECK(seen.pause || (size_t)n == len - used);
		CHECK(rounds < 10000);
		used += (size_t)n;
	}
	return ERROR_NONE;
}

/* In pieces of this many bytes. */
static enum error_code parse_cut(const char *type, const char *body, size_t len, size_t piece)
{
	struct multipart *m;
	struct error e;
	seen.log.len = 0;
	seen.parts = 0;
	if (multipart_create(&m, type, 3, &events, &seen, &e) < 0)
		return e.code;
	enum error_code code = ERROR_NONE;
	for (size_t at = 0; at < len && code == ERROR_NONE; at += piece)
		code = push_all(m, body + at, len - at < piece ? len - at : piece, &e);
	if (code == ERROR_NONE && multipart_end(m, &e) < 0)
		code = e.code;
	multipart_destroy(m);
	buf_append_char(&seen.log, '\0');
	return code;
}

static enum error_code parse(const char *body)
{
	return parse_cut(TYPE, body, strlen(body), strlen(body) + 1);
}

#define DISPOSITION(rest) "--XX\r\nContent-Disposition: form-data; " rest "\r\n"
#define PART(rest)        DISPOSITION(rest) "\r\n"

static const char two_parts[] = PART("name=\"a\"") "one\r\ntwo\r\n" DISPOSITION(
	"name=\"b\"; filename=\"f.txt\"") "Content-Type: text/plain; charset=utf-8\r\n\r\n\r\n--X\r\n--"
					  "XY\r\n\r\r\n--XX--\r\n";
static const char two_parts_log[] =
	"[a|-|-]one\r\ntwo.[b|f.txt|text/plain; charset=utf-8]\r\n--X\r\n--XY\r\n\r.";

static void splits_parts_however_they_are_cut(void)
{
	for (int pause = 0; pause < 2; pause++) {
		seen.pause = pause;
		for (size_t piece = 1; piece <= sizeof two_parts; piece++) {
			CHECK_INT(parse_cut(TYPE, two_parts, sizeof two_parts - 1, piece),
				ERROR_NONE);
			CHECK_STR(seen.log.data, two_parts_log);
		}
	}
	seen.pause = false;
}

static void takes_empty_forms_and_parts(void)
{
	CHECK_INT(parse("--XX--\r\n"), ERROR_NONE);
	CHECK_STR(seen.log.data, "");
	CHECK_INT(parse("--XX--"), ERROR_NONE);
	CHECK_INT(parse(PART("name=a") "\r\n--XX--"), ERROR_NONE);
	CHECK_STR(seen.log.data, "[a|-|-].");
}

static void takes_any_bytes(void)
{
	autobuf body = {0};
	buf_append_str(&body, PART("name=a"));
	for (int i = 0; i < 70000; i++)
		buf_append_char(&body, (char)(i * 31));
	buf_append_str(&body, "\r\n--XX--\r\n");
	CHECK_INT(parse_cut(TYPE, body.data, body.len, 4096), ERROR_NONE);
	CHECK_INT(seen.log.len, strlen("[a|-|-].") + 70000 + 1);
	CHECK(memcmp(seen.log.data + 7, body.data + strlen(PART("name=a")), 70000) == 0);
}

static void reads_names_as_clients_write_them(void)
{
	static const struct {
		const char *parameters, *log;
	} cases[] = {
		{"name=\"a b\"; filename=\"x;y.txt\"", "[a b|x;y.txt|-]."},
		/* browsers and undici */
		{"name=\"a%22b\"; filename=\"%0D%0a%22%41%.txt\"", "[a\"b|\r\n\"%41%.txt|-]."},
		{"name=\"\xc3\xa4\"; filename=\"\xe2\x82\xac.txt\"",
			"[\xc3\xa4|\xe2\x82\xac.txt|-]."},
		/* curl */
		{"name=\"a\"; filename=\"x\\\"y\\\\z\\w\"", "[a|x\"y\\z\\w|-]."},
		/* urllib3 1 */
		{"name=\"a\"; filename*=utf-8''%e2%82%ac%20x", "[a|\xe2\x82\xac x|-]."},
		{"name=\"a\"; filename=\"old\"; filename*=UTF-8'en'new", "[a|new|-]."},
		{"filename=\"\" ; NAME=\"\"", "[||-]."},
		{"name=token; size=3", "[token|-|-]."},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		autobuf body = {0};
		buf_append_str(&body, "--XX\r\ncontent-disposition:form-data; ");
		buf_append_str(&body, cases[i].parameters);
		buf_append_str(&body, "\r\n\r\n\r\n--XX--\r\n");
		CHECK_INT(parse_cut(TYPE, body.data, body.len, body.len), ERROR_NONE);
		CHECK_STR(seen.log.data, cases[i].log);
	}
}

static void refuses_malformed_bodies(void)
{
	static const char *const bodies[] = {
		"",
		"\r\n--XX--\r\n",
		"preamble\r\n--XX--\r\n",
		"--XY--\r\n",
		"--XX",
		"--XX-",
		"--XX-\r\n",
		"--XX --\r\n",
		"--XX--\r",
		"--XX--\n",
		"--XX--\r\n\r\n",
		"--XX--\r\nepilogue",
		"--XX--x",
		"--XX\r\n",
		"--XX\n" PART("name=a"),
		"--XX\r\n\r\nno head\r\n--XX--\r\n",
		"--XX\r\nContent-Type: text/plain\r\n\r\nno name\r\n--XX--\r\n",
		PART("name=a"),
		PART("name=a") "x\r\n--XX",
		PART("name=a") "x\r\n--XXY\r\n--XX--\r\n",
		PART("name=a") "x\r\n--XX\r\n",
		PART("name=a") "x\n--XX--\r\n",
		PART("name=a") "--XX--\r\n",
		PART("name=a") "--XX\r\n",
		PART("") "\r\n--XX--",
		PART("name") "\r\n--XX--",
		PART("name=") "\r\n--XX--",
		PART("name=\"a") "\r\n--XX--",
		PART("name=\"a\"b") "\r\n--XX--",
		PART("name=a b") "\r\n--XX--",
		PART("name=a;") "\r\n--XX--",
		PART("name=a; name=b") "\r\n--XX--",
		PART("name=a; filename=b; filename=c") "\r\n--XX--",
		PART("name=a; filename*=latin1''x") "\r\n--XX--",
		PART("name=a; filename*=utf-8'x") "\r\n--XX--",
		PART("name=a; filename*=utf-8''%0") "\r\n--XX--",
		PART("name=a; filename*=utf-8''%00") "\r\n--XX--",
		PART("name=a; filename*=utf-8''%ff") "\r\n--XX--",
		PART("name=\"\xff\"") "\r\n--XX--",
		PART("filename=a") "\r\n--XX--",
		PART("name=\"\x01\"") "\r\n--XX--",
		"--XX\r\nContent-Disposition: attachment; name=a\r\n\r\n\r\n--XX--",
		"--XX\r\nContent-Disposition: form-data x; name=a\r\n\r\n\r\n--XX--",
		"--XX\r\nContent-Disposition : form-data; name=a\r\n\r\n\r\n--XX--",
		"--XX\r\n: x\r\n\r\n\r\n--XX--",
		"--XX\r\nContent-Disposition: form-data;\r\n name=a\r\n\r\n\r\n--XX--",
		"--XX\r\nContent-Disposition: form-data; name=a\n\r\n\r\n--XX--",
		"--XX\r\nContent-Disposition: form-data; name=a\r\nX\n\r\n\r\n--XX--",
		DISPOSITION("name=a") "Content-Disposition: form-data; name=b\r\n\r\n\r\n--XX--",
		DISPOSITION("name=a") "Content-Transfer-Encoding: base64\r\n\r\n\r\n--XX--",
		PART("name=a") "\r\n" PART("name=b") "\r\n" PART("name=c") "\r\n" PART(
			"name=d") "\r\n--XX--",
	};
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		for (size_t piece = 1; piece < 40; piece += 13)
			if (parse_cut(TYPE, bodies[i], strlen(bodies[i]), piece) !=
				ERROR_INVALID_REQUEST)
				check_fail(__FILE__, __LINE__, bodies[i], "taken", "refused");
	static const char nul[] =
		"--XX\r\nContent-Disposition: form-data; name=a\0b\r\n\r\n\r\n--XX--";
	CHECK_INT(parse_cut(TYPE, nul, sizeof nul - 1, sizeof nul), ERROR_INVALID_REQUEST);
	/* And what is harmless. */
	CHECK_INT(
		parse(DISPOSITION("name=a") "Content-Transfer-Encoding: binary\r\nX: y\r\n\r\n\r\n"
					    "--XX--"),
		ERROR_NONE);
}

/* A part whose head has this length. */
static enum error_code parse_head_of(size_t len)
{
	static const char start[] = DISPOSITION("name=a") "X: ";
	autobuf body = {0};
	buf_append_str(&body, start);
	while (body.len < strlen("--XX\r\n") + len - strlen("\r\n\r\n"))
		buf_append_char(&body, 'x');
	buf_append_str(&body, "\r\n\r\n\r\n--XX--");
	return parse_cut(TYPE, body.data, body.len, 1000);
}

static enum error_code parse_headers(int count)
{
	autobuf body = {0};
	buf_append_str(&body, DISPOSITION("name=a"));
	for (int i = 1; i < count; i++)
		buf_append_str(&body, "X: y\r\n");
	buf_append_str(&body, "\r\n\r\n--XX--");
	return parse_cut(TYPE, body.data, body.len, body.len);
}

static void limits_heads(void)
{
	CHECK_INT(parse_head_of(MULTIPART_HEAD_MAX), ERROR_NONE);
	CHECK_INT(parse_head_of(MULTIPART_HEAD_MAX + 1), ERROR_INVALID_REQUEST);
	CHECK_INT(parse_headers(MULTIPART_HEADERS_MAX), ERROR_NONE);
	CHECK_INT(parse_headers(MULTIPART_HEADERS_MAX + 1), ERROR_INVALID_REQUEST);
}

static void reads_boundaries(void)
{
	static const struct {
		const char *type;
		enum error_code code;
	} cases[] = {
		{"Multipart/Form-Data;BOUNDARY=XX", ERROR_NONE},
		{"multipart/form-data ; charset=utf-8; boundary=\"XX\"", ERROR_NONE},
		{NULL, ERROR_UNSUPPORTED_MEDIA_TYPE},
		{"", ERROR_UNSUPPORTED_MEDIA_TYPE},
		{"multipart/mixed; boundary=XX", ERROR_UNSUPPORTED_MEDIA_TYPE},
		{"multipart/form-dataX; boundary=XX", ERROR_UNSUPPORTED_MEDIA_TYPE},
		{"multipart/form-data", ERROR_INVALID_REQUEST},
		{"multipart/form-data junk; boundary=XX", ERROR_INVALID_REQUEST},
		{"multipart/form-data; boundary", ERROR_INVALID_REQUEST},
		{"multipart/form-data; boundary=", ERROR_INVALID_REQUEST},
		{"multipart/form-data; boundary=\"\"", ERROR_INVALID_REQUEST},
		{"multipart/form-data; boundary=\"XX \"", ERROR_INVALID_REQUEST},
		{"multipart/form-data; boundary=XX; boundary=XX", ERROR_INVALID_REQUEST},
		{"multipart/form-data; boundary=\"X\\\"X\"", ERROR_INVALID_REQUEST},
		{"multipart/form-data; "
		 "boundary=12345678901234567890123456789012345678901234567890123456789012345678901",
			ERROR_INVALID_REQUEST},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (parse_cut(cases[i].type, "--XX--", 6, 6) != cases[i].code)
			check_fail(
				__FILE__, __LINE__, cases[i].type, "another outcome", "as listed");
}

static void passes_on_what_a_callback_refuses(void)
{
	struct multipart *m;
	struct error e;
	seen.refuse_part = 2;
	CHECK_INT(parse_cut(TYPE, two_parts, sizeof two_parts - 1, 10), ERROR_QUOTA_EXCEEDED);
	seen.parts = 1;
	CHECK(multipart_create(&m, TYPE, 3, &events, &seen, &e) == 0);
	CHECK(multipart_push(m, two_parts, sizeof two_parts - 1, &e) < 0);
	CHECK_INT(e.code, ERROR_QUOTA_EXCEEDED);
	/* For good. */
	CHECK(multipart_push(m, "x", 1, &e) < 0);
	multipart_destroy(m);
	seen.refuse_part = 0;
}

static const struct check_test tests[] = {
	TEST(splits_parts_however_they_are_cut),
	TEST(takes_empty_forms_and_parts),
	TEST(takes_any_bytes),
	TEST(reads_names_as_clients_write_them),
	TEST(refuses_malformed_bodies),
	TEST(limits_heads),
	TEST(reads_boundaries),
	TEST(passes_on_what_a_callback_refuses),
};

int main(void)
{
	int failed = RUN_TESTS(tests);
	buf_finish(&seen.log);
	return failed;
}
