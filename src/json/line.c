/*
 * JSON of others that is passed on as text: a check that it is JSON, and its form for readers who
 * cannot be trusted with anything beyond ASCII.
 */
#include <string.h>

#include "json/json.h"
#include "base/utf8.h"

/* ---- one value on one line ---- */

struct reader {
	const char *at, *end;
	unsigned depth;
	uint64_t objects; /* a bit for each level: it is an object */
};

static bool take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

static void skip_blanks(struct reader *r)
{
	while (take(r, ' ') || take(r, '\t'))
		;
}

static bool take_word(struct reader *r, const char *word)
{
	size_t len = strlen(word);
	if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
		return false;
	r->at += len;
	return true;
}

static size_t take_digits(struct reader *r)
{
	const char *begin = r->at;
	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (size_t)(r->at - begin);
}

static bool take_number(struct reader *r)
{
	take(r, '-');
	if (!take(r, '0') && take_digits(r) == 0)
		return false;
	if (take(r, '.') && take_digits(r) == 0)
		return false;
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '+'))
			take(r, '-');
		return take_digits(r) > 0;
	}
	return true;
}

static bool take_escape(struct reader *r)
{
	if (take(r, 'u')) {
		for (int i = 0; i < 4; i++, r->at++)
			if (r->at == r->end || !*r->at || !strchr("0123456789abcdefABCDEF", *r->at))
				return false;
		return true;
	}
	return r->at < r->end && *r->at && strchr("\"\\/bfnrt", *r->at++);
}

static bool take_string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (r->at < r->end && *r->at != '"') {
		if ((unsigned char)*r->at < 0x20)
			return false;
		if (take(r, '\\')) {
			if (!take_escape(r))
				return false;
			continue;
		}
		size_t n = utf8_char_len(r->at, (size_t)(r->end - r->at));
		if (n == 0)
			return false;
		r->at += n;
	}
	return take(r, '"');
}

static bool take_key(struct reader *r)
{
	skip_blanks(r);
	if (!take_string(r))
		return false;
	skip_blanks(r);
	return take(r, ':');
}

/* A value that is not a container; or the begin of one, which makes *inside true. */
static bool take_value(struct reader *r, bool *inside)
{
	skip_blanks(r);
	*inside = false;
	if (r->at == r->end)
		return false;
	bool is_object = *r->at == '{';
	if (is_object || *r->at == '[') {
		if (r->depth == JSON_MAX_DEPTH)
			return false;
		uint64_t bit = (uint64_t)1 << r->depth++;
		r->objects = is_object ? r->objects | bit : r->objects & ~bit;
		r->at++;
		*inside = true;
		return true;
	}
	if (*r->at == '"')
		return take_string(r);
	return take_word(r, "true") || take_word(r, "false") || take_word(r, "null") ||
	       take_number(r);
}

static bool is_in_object(const struct reader *r)
{
	return r->objects >> (r->depth - 1) & 1;
}

/* Behind a value: the ends of what ends here. True when another value is to come. */
static bool take_ends(struct reader *r, bool just_begun)
{
	while (r->depth > 0) {
		skip_blanks(r);
		if (take(r, is_in_object(r) ? '}' : ']'))
			r->depth--;
		else
			return just_begun || take(r, ',');
		just_begun = false;
	}
	return false;
}

bool json_is_line(const char *text, size_t len)
{
	struct reader r = {.at = text, .end = text + len};
	bool inside;
	do {
		if (r.depth > 0 && is_in_object(&r) && !take_key(&r))
			return false;
		if (!take_value(&r, &inside))
			return false;
	} while (take_ends(&r, inside));
	skip_blanks(&r);
	return r.depth == 0 && r.at == r.end;
}

/* ---- nothing beyond ASCII ---- */

static void put_unit(struct buf *out, unsigned unit)
{
	static const char hex[] = "0123456789abcdef";
	buf_append(out,
		(char[]){'\\', 'u', hex[unit >> 12 & 15], hex[unit >> 8 & 15], hex[unit >> 4 & 15],
			hex[unit & 15]},
		6);
}

static unsigned code_point(const unsigned char *s, size_t len)
{
	unsigned c = s[0] & (0xffu >> (len + 1));
	for (size_t i = 1; i < len; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

void json_append_ascii(struct buf *out, const char *json, size_t len)
{
	size_t i = 0;
	buf_reserve(out, len);
	while (i < len) {
		size_t run = i;
		while (run < len && (unsigned char)json[run] < 0x80)
			run++;
		buf_append(out, json + i, run - i);
		i = run;
		if (i == len)
			break;
		size_t n = utf8_char_len(json + i, len - i);
		unsigned c = n ? code_point((const unsigned char *)json + i, n) : 0xfffd;
		if (c > 0xffff) {
			put_unit(out, 0xd800 + ((c - 0x10000) >> 10));
			put_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
		} else {
			put_unit(out, c);
		}
		i += n ? n : 1;
	}
}
