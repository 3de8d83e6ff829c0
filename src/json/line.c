/*
 * JSON of others that is passed on as text: a check that it is JSON, and its form for readers who
 * cannot be trusted with anything beyond ASCII.
 */
#include "base/utf8.h"
#include "json/json.h"
#include "json/scan.h"

bool json_is_line(const char *text, size_t len)
{
	struct json_scan s = {.text = text,
		.len = len,
		.last = true,
		.max_depth = JSON_MAX_DEPTH,
		.one_line = true,
		.any_escape = true};
	int token;
	do {
		token = json_scan(&s);
	} while (token > 0 && token != JSON_DONE);
	return token == JSON_DONE;
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
