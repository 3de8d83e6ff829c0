#include "json/push.h"

#include <string.h>

#include "json/json.h"
#include "base/utf8.h"

/* What may come next. */
enum {
	EXPECT_VALUE,
	EXPECT_FIRST_KEY,   /* or the end of the object */
	EXPECT_FIRST_VALUE, /* or the end of the array */
	EXPECT_KEY,
	EXPECT_COLON,
	EXPECT_COMMA, /* or the end */
	EXPECT_STRING_REST,
	EXPECT_NOTHING
};

void json_push_add(struct json_push *p, const char *bytes, size_t len)
{
	buf_consume(&p->in, p->at);
	p->at = 0;
	buf_append(&p->in, bytes, len);
}

size_t json_push_waiting(const struct json_push *p)
{
	return p->in.len - p->at;
}

void json_push_end(struct json_push *p)
{
	p->ended = true;
}

void json_push_finish(struct json_push *p)
{
	buf_finish(&p->in);
	buf_finish(&p->text);
}

static int fail(struct error *e, const char *why)
{
	return error_set(e, ERROR_INVALID_JSON, "the body is not valid JSON: %s", why);
}

static int want_more(const struct json_push *p, struct error *e)
{
	return p->ended ? fail(e, "it ends too early") : JSON_MORE;
}

static bool is_in_object(const struct json_push *p)
{
	return p->depth > 0 && (p->objects >> (p->depth - 1) & 1);
}

static void value_ended(struct json_push *p)
{
	p->expects = p->depth == 0 ? EXPECT_NOTHING : EXPECT_COMMA;
}

/* ---- strings ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* -1: these are not four digits. */
static int read_unit(const char *at)
{
	int unit = 0;
	for (int i = 0; i < 4; i++) {
		int digit = hex_value(at[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static void append_character(struct buf *out, unsigned c)
{
	if (c < 0x80) {
		buf_append_char(out, (char)c);
	} else if (c < 0x800) {
		buf_append_char(out, (char)(0xc0 | c >> 6));
		buf_append_char(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_append_char(out, (char)(0xe0 | c >> 12));
		buf_append_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_append_char(out, (char)(0xf0 | c >> 18));
		buf_append_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_append_char(out, (char)(0x80 | (c & 0x3f)));
	}
}

/* "uXXXX" and, where that is half of a pair, the other half. How many bytes it has; 0: more are
 * needed. */
static int take_unicode(struct json_push *p, const char *at, size_t len, struct error *e)
{
	if (len < 5)
		return 0;
	int unit = read_unit(at + 1);
	if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
		return fail(e, "an escape is none, or NUL, or half of a pair");
	if (unit < 0xd800 || unit > 0xdbff) {
		append_character(&p->text, (unsigned)unit);
		return 5;
	}
	if (len < 11)
		return 0;
	int low = at[5] == '\\' && at[6] == 'u' ? read_unit(at + 7) : -1;
	if (low < 0xdc00 || low > 0xdfff)
		return fail(e, "an escape is half of a pair");
	append_character(
		&p->text, 0x10000u + (((unsigned)unit - 0xd800) << 10) + ((unsigned)low - 0xdc00));
	return 11;
}

/* What follows a backslash. */
static int take_escape(struct json_push *p, const char *at, size_t len, struct error *e)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (len == 0)
		return 0;
	if (*at == 'u')
		return take_unicode(p, at, len, e);
	const char *known = *at ? strchr(from, *at) : NULL;
	if (!known)
		return fail(e, "there is no such escape");
	buf_append_char(&p->text, to[known - from]);
	return 1;
}

static size_t plain_run(const char *at, size_t len)
{
	size_t n = 0;
	for (; n < len; n++) {
		unsigned char c = (unsigned char)at[n];
		if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
			break;
	}
	return n;
}

/* One character that is not plain. 0: more bytes are needed; -1: it cannot be. */
static int take_special(struct json_push *p, const char *at, size_t len, struct error *e)
{
	if (*at == '\\') {
		int n = take_escape(p, at + 1, len - 1, e);
		return n <= 0 ? n : n + 1;
	}
	if ((unsigned char)*at < ' ')
		return fail(e, "a string has a control character");
	size_t n = utf8_char_len(at, len);
	if (n == 0 && utf8_incomplete_tail(at, len) == len && len < 4)
		return 0;
	if (n == 0)
		return fail(e, "a string is not UTF-8");
	buf_append(&p->text, at, n);
	return (int)n;
}

/* As far as it is there. 1: up to its end; 0: not. */
static int take_string(struct json_push *p, struct error *e)
{
	while (p->at < p->in.len) {
		const char *at = p->in.data + p->at;
		size_t left = p->in.len - p->at, run = plain_run(at, left);
		buf_append(&p->text, at, run);
		p->at += run;
		if (run == left)
			break;
		if (at[run] == '"') {
			p->at++;
			return 1;
		}
		int n = take_special(p, at + run, left - run, e);
		if (n <= 0)
			return n;
		p->at += (size_t)n;
	}
	return 0;
}

/* Keys are short, and come whole: the text stays until its end is there. */
static int take_key(struct json_push *p, struct error *e)
{
	int r = take_string(p, e);
	if (r < 0)
		return r;
	if (p->text.len > JSON_PUSH_KEY_MAX)
		return fail(e, "a key is too long");
	if (r == 0)
		return want_more(p, e);
	buf_append_char(&p->text, '\0');
	p->text.len--;
	p->in_key = false;
	p->expects = EXPECT_COLON;
	return JSON_KEY;
}

static int take_piece(struct json_push *p, struct error *e)
{
	int r = take_string(p, e);
	if (r < 0)
		return r;
	if (r == 0)
		return p->text.len > 0 ? JSON_PIECE : want_more(p, e);
	if (p->text.len > 0) {
		p->at--; /* the quote comes again, and then it is the end */
		return JSON_PIECE;
	}
	value_ended(p);
	return JSON_TEXT_END;
}

/* ---- other values ---- */

static int take_literal(struct json_push *p, struct error *e)
{
	const char *at = p->in.data + p->at;
	size_t left = p->in.len - p->at, len = 0;
	while (len < left && at[len] && strchr("+-.0123456789Eabcdefghijklmnopqrstuvwxyz", at[len]))
		len++;
	if (len > JSON_PUSH_LITERAL_MAX)
		return fail(e, "a number is too long");
	if (len == left && !p->ended)
		return JSON_MORE;
	if (len == 0 || !json_is_line(at, len))
		return fail(e, "something is no value");
	buf_append(&p->text, at, len);
	buf_append_char(&p->text, '\0');
	p->text.len--;
	p->at += len;
	value_ended(p);
	return JSON_LITERAL;
}

static int begin(struct json_push *p, bool object, struct error *e)
{
	if (p->depth == JSON_PUSH_DEPTH)
		return fail(e, "it is nested too deep");
	uint32_t bit = (uint32_t)1 << p->depth++;
	p->objects = object ? p->objects | bit : p->objects & ~bit;
	p->expects = object ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
	p->at++;
	return object ? JSON_BEGIN_OBJECT : JSON_BEGIN_ARRAY;
}

static int end(struct json_push *p)
{
	int token = is_in_object(p) ? JSON_END_OBJECT : JSON_END_ARRAY;
	p->at++;
	p->depth--;
	value_ended(p);
	return token;
}

static int take_value(struct json_push *p, char c, struct error *e)
{
	if (c == '{' || c == '[')
		return begin(p, c == '{', e);
	if (c != '"')
		return take_literal(p, e);
	p->at++;
	p->expects = EXPECT_STRING_REST;
	return take_piece(p, e);
}

static int begin_key(struct json_push *p, char c, struct error *e)
{
	if (c != '"')
		return fail(e, "a key is missing");
	p->at++;
	p->in_key = true;
	return take_key(p, e);
}

/* ---- the steps ---- */

/* After a comma or colon there is no token yet: -2 says go on. */
#define GO_ON (-2)

static int take_token(struct json_push *p, char c, struct error *e)
{
	char close = is_in_object(p) ? '}' : ']';
	switch (p->expects) {
	case EXPECT_FIRST_KEY:
		return c == close ? end(p) : begin_key(p, c, e);
	case EXPECT_FIRST_VALUE:
		return c == close ? end(p) : take_value(p, c, e);
	case EXPECT_KEY:
		return begin_key(p, c, e);
	case EXPECT_VALUE:
		return take_value(p, c, e);
	case EXPECT_COLON:
		p->at++;
		p->expects = EXPECT_VALUE;
		return c == ':' ? GO_ON : fail(e, "a colon is missing");
	case EXPECT_COMMA:
		if (c == close)
			return end(p);
		p->at++;
		p->expects = is_in_object(p) ? EXPECT_KEY : EXPECT_VALUE;
		return c == ',' ? GO_ON : fail(e, "a comma is missing");
	default:
		return fail(e, "something follows its end");
	}
}

static void skip_blanks(struct json_push *p)
{
	while (p->at < p->in.len && p->in.data[p->at] && strchr(" \t\r\n", p->in.data[p->at]))
		p->at++;
}

int json_push_step(struct json_push *p, struct error *e)
{
	int token;
	if (p->in.failed || p->text.failed)
		return error_set(e, ERROR_UNAVAILABLE, "out of memory");
	if (p->in_key)
		return take_key(p, e);
	p->text.len = 0;
	if (p->expects == EXPECT_STRING_REST)
		return take_piece(p, e);
	do {
		skip_blanks(p);
		if (p->at == p->in.len)
			return p->expects == EXPECT_NOTHING ? JSON_DONE : want_more(p, e);
		token = take_token(p, p->in.data[p->at], e);
	} while (token == GO_ON);
	return token;
}
