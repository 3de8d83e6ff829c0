/*
 * The JSON writer. Strings are copied in runs: most output has nothing to escape, so the scan for
 * the end of a run is the cost, and it looks at eight bytes at a time while they are plain.
 */
#include "json/json.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

static void begin_value(struct json_writer *w);
static void json_write_put_quoted(struct buf *out, const char *s, size_t len);
static size_t plain_run(const char *s, size_t len);
static bool all_plain(const char *s);
static void put_escape(struct buf *out, unsigned char byte);

void json_begin_object(struct json_writer *w)
{
	begin_value(w);
	buf_append_char(w->out, '{');
	w->need_comma = false;
}

void json_end_object(struct json_writer *w)
{
	buf_append_char(w->out, '}');
	w->need_comma = true;
}

void json_begin_array(struct json_writer *w)
{
	begin_value(w);
	buf_append_char(w->out, '[');
	w->need_comma = false;
}

void json_end_array(struct json_writer *w)
{
	buf_append_char(w->out, ']');
	w->need_comma = true;
}

void json_key(struct json_writer *w, const char *key)
{
	json_key_n(w, key, strlen(key));
}

void json_key_n(struct json_writer *w, const char *key, size_t len)
{
	begin_value(w);
	json_write_put_quoted(w->out, key, len);
	buf_append_char(w->out, ':');
	w->need_comma = false;
}

void json_key_plain(struct json_writer *w, const char *key, size_t len)
{
	struct buf *b = w->out;
	if (!buf_reserve(b, len + 4))
		return;
	if (w->need_comma)
		b->data[b->len++] = ',';
	b->data[b->len++] = '"';
	memcpy(b->data + b->len, key, len);
	b->len += len;
	b->data[b->len++] = '"';
	b->data[b->len++] = ':';
	w->need_comma = false;
}

void json_string(struct json_writer *w, const char *value)
{
	if (value)
		json_string_n(w, value, strlen(value));
	else
		json_null(w);
}

void json_string_n(struct json_writer *w, const char *value, size_t len)
{
	begin_value(w);
	json_write_put_quoted(w->out, value, len);
}

static void append_base64(struct buf *out, const void *data, size_t len)
{
	/* The length that libsodium wants counts the NUL it writes. */
	size_t size = sodium_base64_encoded_len(len, sodium_base64_VARIANT_ORIGINAL);
	if (!buf_reserve(out, size))
		return;
	sodium_bin2base64(out->data + out->len, size, data, len, sodium_base64_VARIANT_ORIGINAL);
	out->len += size - 1;
}

void json_base64(struct json_writer *w, const void *data, size_t len)
{
	json_begin_base64(w);
	append_base64(w->out, data, len);
	buf_append_char(w->out, '"');
}

void json_begin_base64(struct json_writer *w)
{
	begin_value(w);
	buf_append_char(w->out, '"');
}

void json_add_base64(
	struct json_writer *w, struct json_base64_rest *rest, const void *data, size_t len)
{
	const unsigned char *at = data;
	for (; len > 0 && rest->len > 0 && rest->len < 3; len--)
		rest->bytes[rest->len++] = *at++;
	if (rest->len == 3) {
		append_base64(w->out, rest->bytes, 3);
		rest->len = 0;
	}
	if (rest->len > 0)
		return;
	append_base64(w->out, at, len - len % 3);
	for (at += len - len % 3; rest->len < len % 3; rest->len++)
		rest->bytes[rest->len] = *at++;
}

void json_end_base64(struct json_writer *w, struct json_base64_rest *rest)
{
	append_base64(w->out, rest->bytes, rest->len);
	rest->len = 0;
	buf_append_char(w->out, '"');
}

void json_int(struct json_writer *w, int64_t value)
{
	char text[24];
	int len = snprintf(text, sizeof text, "%lld", (long long)value);
	begin_value(w);
	buf_append(w->out, text, (size_t)len);
}

void json_bool(struct json_writer *w, bool value)
{
	json_raw(w, value ? "true" : "false");
}

void json_null(struct json_writer *w)
{
	json_raw(w, "null");
}

void json_raw(struct json_writer *w, const char *json)
{
	begin_value(w);
	buf_append_str(w->out, json);
}

void json_raw_n(struct json_writer *w, const char *json, size_t len)
{
	begin_value(w);
	buf_append(w->out, json, len);
}

void json_put_string(struct json_writer *w, const char *key, const char *value)
{
	json_key(w, key);
	json_string(w, value);
}

void json_put_int(struct json_writer *w, const char *key, int64_t value)
{
	json_key(w, key);
	json_int(w, value);
}

void json_put_bool(struct json_writer *w, const char *key, bool value)
{
	json_key(w, key);
	json_bool(w, value);
}

void json_env_members(struct json_writer *w, const char *env, size_t len)
{
	for (size_t at = 0; at < len; at += strlen(env + at) + 1) {
		const char *entry = env + at;
		size_t name_len = strcspn(entry, "=");
		autobuf name = {0};
		buf_append(&name, entry, name_len);
		buf_append_char(&name, '\0');
		if (!name.failed)
			json_put_string(w, name.data, entry + name_len + (entry[name_len] == '='));
	}
}

void json_env(struct json_writer *w, const char *env, size_t len)
{
	json_begin_object(w);
	json_env_members(w, env, len);
	json_end_object(w);
}

void json_put_env(struct json_writer *w, const char *key, const char *env, size_t len)
{
	json_key(w, key);
	json_env(w, env, len);
}

void json_time(struct json_writer *w, int64_t wall_ms)
{
	char text[RFC3339_SIZE];
	clock_format_rfc3339(wall_ms, text);
	json_string(w, text);
}

void json_put_time(struct json_writer *w, const char *key, int64_t wall_ms)
{
	json_key(w, key);
	json_time(w, wall_ms);
}

/* A key begins with the comma too; its value then follows without one. */
static void begin_value(struct json_writer *w)
{
	if (w->need_comma)
		buf_append_char(w->out, ',');
	w->need_comma = true;
}

static void json_write_put_quoted(struct buf *out, const char *s, size_t len)
{
	buf_reserve(out, len + 2);
	buf_append_char(out, '"');
	while (len > 0) {
		size_t run = plain_run(s, len);
		buf_append(out, s, run);
		s += run;
		len -= run;
		if (len > 0) {
			put_escape(out, (unsigned char)*s);
			s++;
			len--;
		}
	}
	buf_append_char(out, '"');
}

/* Returns how many bytes of s need no escape. */
static size_t plain_run(const char *s, size_t len)
{
	size_t i = 0;
	while (i < len) {
		if (len - i >= 8 && all_plain(s + i)) {
			i += 8;
			continue;
		}
		unsigned char byte = (unsigned char)s[i];
		if (byte < 0x20 || byte == '"' || byte == '\\')
			break;
		size_t n = utf8_char_len(s + i, len - i);
		if (n == 0)
			break;
		i += n;
	}
	return i;
}

/* Whether none of eight bytes is a control, a quote, a backslash or beyond ASCII. */
static bool all_plain(const char *s)
{
	const uint64_t ones = 0x0101010101010101, high = 0x8080808080808080;
	uint64_t v;
	memcpy(&v, s, sizeof v);
	/* x - 1 borrows into a byte's high bit when that byte is 0, or when the one below borrowed:
	 * then we may take the slow way for nothing, but never the fast way wrongly. */
	uint64_t quote = (v ^ ones * '"') - ones;
	uint64_t backslash = (v ^ ones * '\\') - ones;
	uint64_t control = v - ones * 0x20;
	return ((v | quote | backslash | control) & high) == 0;
}

static void put_escape(struct buf *out, unsigned char byte)
{
	static const char names[] = {['\b'] = 'b',
		['\f'] = 'f',
		['\n'] = 'n',
		['\r'] = 'r',
		['\t'] = 't',
		['"'] = '"',
		['\\'] = '\\'};
	static const char hex[] = "0123456789abcdef";
	if (byte >= 0x80)
		buf_append(out, "\xef\xbf\xbd", 3); /* U+FFFD */
	else if (names[byte])
		buf_append(out, (char[]){'\\', names[byte]}, 2);
	else
		buf_append(out, (char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
}
