#include "json/push.h"

#include <string.h>

#include "json/json.h"

void json_push_add(struct json_push *p, const char *bytes, size_t len)
{
	buf_consume(&p->in, p->scan.at);
	p->scan.at = 0;
	buf_append(&p->in, bytes, len);
}

size_t json_push_waiting(const struct json_push *p)
{
	return p->in.len - p->scan.at;
}

void json_push_end(struct json_push *p)
{
	p->scan.last = true;
}

void json_push_finish(struct json_push *p)
{
	buf_finish(&p->in);
	buf_finish(&p->text);
}

/* ---- text without escapes ---- */

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

/* Appends the decoded form of an escape that the scanner has checked. Returns its length. */
static size_t append_escape(struct buf *out, const char *at)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	if (at[1] != 'u') {
		buf_append_char(out, to[strchr(from, at[1]) - from]);
		return 2;
	}
	unsigned unit = (unsigned)json_scan_unit(at + 2);
	if (unit < 0xd800 || unit > 0xdbff) {
		append_character(out, unit);
		return 6;
	}
	unsigned low = (unsigned)json_scan_unit(at + 8);
	append_character(out, 0x10000u + ((unit - 0xd800) << 10) + (low - 0xdc00));
	return 12;
}

static void append_unescaped(struct buf *out, const char *raw, size_t len)
{
	const char *end = raw + len;
	while (raw < end) {
		const char *escape = memchr(raw, '\\', (size_t)(end - raw));
		size_t run = (size_t)((escape ? escape : end) - raw);
		buf_append(out, raw, run);
		raw += run;
		if (escape)
			raw += append_escape(out, raw);
	}
}

/* ---- the steps ---- */

static int push_refuse(struct error *e, const char *why)
{
	return error_set(e, ERROR_INVALID_JSON, "the body is not valid JSON: %s", why);
}

static void push_terminate_text(struct json_push *p)
{
	buf_append_char(&p->text, '\0');
	p->text.len--;
}

/* Collects the pieces of a key; 0: that was one of them. */
static int push_key(struct json_push *p, int token, struct error *e)
{
	if (token == JSON_PIECE)
		append_unescaped(&p->text, p->scan.raw, p->scan.raw_len);
	if (p->text.len > JSON_PUSH_KEY_MAX)
		return push_refuse(e, "a key that is too long");
	if (token == JSON_KEY)
		push_terminate_text(p);
	return token == JSON_PIECE ? 0 : token;
}

int json_push_step(struct json_push *p, struct error *e)
{
	struct json_scan *s = &p->scan;
	int token;
	if (p->in.failed || p->text.failed)
		return error_set(e, ERROR_UNAVAILABLE, "out of memory");
	s->text = p->in.data;
	s->len = p->in.len;
	s->max_depth = JSON_PUSH_DEPTH;
	if (!s->in_key)
		p->text.len = 0;
	do {
		token = json_scan(s);
		if (token < 0)
			return push_refuse(e, s->fault);
		if (token == JSON_MORE || !s->in_key)
			break;
		token = push_key(p, token, e);
	} while (token == 0);
	if (token == JSON_KEY)
		s->in_key = false;
	if (token == JSON_PIECE || token == JSON_LITERAL)
		append_unescaped(&p->text, s->raw, s->raw_len);
	if (token == JSON_LITERAL)
		push_terminate_text(p);
	return token;
}
