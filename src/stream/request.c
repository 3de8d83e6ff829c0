#include "stream/request.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define METHOD_MAX       20
#define LENGTH_MAX       18 /* digits, which cannot overflow 64 bits */
#define CHUNK_DIGITS_MAX 15

/* ---- names ---- */

bool request_settle_name(const uint8_t *data, size_t len, char out[REQUEST_HOST_SIZE])
{
	size_t label = 0;
	if (len > 0 && data[len - 1] == '.')
		len--;
	out[0] = '\0';
	if (len == 0 || len > REQUEST_HOST_SIZE - 3)
		return false;
	for (size_t i = 0; i < len; i++) {
		out[i] = (char)tolower(data[i]);
		if (data[i] == '.' && (i == label || i - label > 63))
			return false;
		if (data[i] == '.')
			label = i + 1;
		else if (!isalnum(data[i]) && data[i] != '-' && data[i] != '_')
			return false;
	}
	out[len] = '\0';
	const char *last = out + label;
	bool hex = last[0] == '0' && last[1] == 'x';
	return *last && len - label <= 63 &&
	       last[strspn(last, hex ? "0123456789abcdefx" : "0123456789")] != '\0';
}

/* ---- lines ---- */

bool request_is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("!#$%&'*+-.^_`|~", text[i]))
			return false;
	return len > 0;
}

/* "GET /path HTTP/1.1" */
static bool request_line_is_plain(const char *line, size_t len)
{
	const char *target = memchr(line, ' ', len), *end = line + len;
	if (!target || target - line > METHOD_MAX ||
		!request_is_token(line, (size_t)(target - line)) || target + 1 == end ||
		target[1] != '/')
		return false;
	const char *version = target + 1;
	while (version<end && * version> 0x20 && *version < 0x7f)
		version++;
	size_t left = (size_t)(end - version);
	return left == strlen(" HTTP/1.1") && (strncmp(version, " HTTP/1.1", left) == 0 ||
						      strncmp(version, " HTTP/1.0", left) == 0);
}

/* "name", "name:port", "192.0.2.1:80", "[2001:db8::1]:80" */
static int take_host(struct request *r, const char *value, size_t len)
{
	const char *colon = memchr(value, ':', len);
	if (len > 0 && value[0] == '[') {
		const char *end = memchr(value, ']', len);
		colon = end ? memchr(end, ':', len - (size_t)(end - value)) : NULL;
		if (!end || (end + 1 != value + len && end + 1 != colon))
			return -EINVAL;
	}
	size_t host = colon ? (size_t)(colon - value) : len;
	for (size_t i = host + 1; i < len; i++)
		if (!isdigit((unsigned char)value[i]))
			return -EINVAL;
	if (r->host[0] || host == 0 || host >= sizeof r->host || (colon && len - host > 6))
		return -EINVAL;
	r->is_name = request_settle_name((const uint8_t *)value, host, r->host);
	if (r->is_name)
		return 0;
	for (size_t i = 0; i < host; i++) {
		if (!isxdigit((unsigned char)value[i]) && !strchr("[]:.", value[i]))
			return -EINVAL;
		r->host[i] = (char)tolower((unsigned char)value[i]);
	}
	r->host[host] = '\0';
	return 0;
}

static int take_length(struct request *r, const char *value, size_t len, bool *seen)
{
	if (*seen || len == 0 || len > LENGTH_MAX)
		return -EINVAL;
	*seen = true;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)value[i]))
			return -EINVAL;
		r->length = r->length * 10 + (uint64_t)(value[i] - '0');
	}
	return 0;
}

static int take_coding(struct request *r, const char *value, size_t len)
{
	if (r->is_chunked || len != strlen("chunked") || strncasecmp(value, "chunked", len) != 0)
		return -EINVAL;
	r->is_chunked = true;
	return 0;
}

/* Of other protocols WebSocket only: HTTP/2 without TLS would hide its names. */
static int take_upgrade(struct request *r, const char *value, size_t len)
{
	if (r->upgrades || len != strlen("websocket") || strncasecmp(value, "websocket", len) != 0)
		return -EINVAL;
	r->upgrades = true;
	return 0;
}

bool request_field_is(const struct request_field *f, const char *name)
{
	return f->name_len == strlen(name) && strncasecmp(f->name, name, f->name_len) == 0;
}

static bool split_field(const char *line, size_t len, struct request_field *ret)
{
	const char *colon = memchr(line, ':', len), *end = line + len;
	size_t name = colon ? (size_t)(colon - line) : 0;
	if (!colon || !request_is_token(line, name))
		return false;
	const char *value = colon + 1;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*ret = (struct request_field){line, value, name, (size_t)(end - value)};
	return true;
}

static int take_field(struct request *r, const char *line, size_t len, bool *has_length)
{
	struct request_field f;
	if (!split_field(line, len, &f))
		return -EINVAL;
	if (request_field_is(&f, "Host"))
		return take_host(r, f.value, f.value_len);
	if (request_field_is(&f, "Content-Length"))
		return take_length(r, f.value, f.value_len, has_length);
	if (request_field_is(&f, "Transfer-Encoding"))
		return take_coding(r, f.value, f.value_len);
	if (request_field_is(&f, "Upgrade"))
		return take_upgrade(r, f.value, f.value_len);
	return 0;
}

/* The end of the line that begins at `at`: 1 with its length, 0 if it is not there, -EINVAL. */
static int find_line(const uint8_t *data, size_t len, size_t at, size_t *ret)
{
	for (size_t i = at; i < len; i++) {
		if (data[i] == '\r') {
			*ret = i - at;
			return i + 1 == len ? 0 : data[i + 1] == '\n' ? 1 : -EINVAL;
		}
		if ((data[i] < 0x20 && data[i] != '\t') || data[i] == 0x7f)
			return -EINVAL;
	}
	return 0;
}

bool request_next_field(const uint8_t *head, size_t len, size_t *at, struct request_field *ret)
{
	size_t line_len;
	if (*at == 0 && find_line(head, len, 0, &line_len) > 0)
		*at = line_len + 2;
	if (find_line(head, len, *at, &line_len) <= 0 ||
		!split_field((const char *)head + *at, line_len, ret))
		return false;
	*at += line_len + 2;
	return true;
}

int request_read(const uint8_t *data, size_t len, struct request *ret)
{
	size_t at = 0, line_len = 0;
	bool has_length = false;
	int r;
	*ret = (struct request){0};
	while ((r = find_line(data, len, at, &line_len)) > 0 && (line_len > 0 || at == 0)) {
		const char *line = (const char *)data + at;
		if (at == 0 ? !request_line_is_plain(line, line_len)
			    : take_field(ret, line, line_len, &has_length) < 0)
			return -EINVAL;
		at += line_len + 2;
	}
	if (r <= 0)
		return r < 0 || len >= REQUEST_MAX ? -EINVAL : 0;
	if ((has_length && ret->is_chunked) || at + 2 > REQUEST_MAX)
		return -EINVAL;
	return (int)(at + 2);
}

/* ---- chunked bodies ---- */

enum chunk_state {
	CHUNK_SIZE,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_LAST_CR,
	CHUNK_LAST_LF
};

static int chunk_take_digit(struct chunks *c, uint8_t byte)
{
	if (byte == '\r' && c->digits > 0) {
		c->state = CHUNK_SIZE_LF;
		return 0;
	}
	if (!isxdigit(byte) || ++c->digits > CHUNK_DIGITS_MAX)
		return -EINVAL;
	c->left = c->left << 4 | (uint64_t)(isdigit(byte) ? byte - '0' : tolower(byte) - 'a' + 10);
	return 0;
}

/* One byte that is no data: 0, or -EINVAL. No extensions, no trailers. */
static int chunk_take_byte(struct chunks *c, uint8_t byte)
{
	static const struct {
		uint8_t byte;
		int next;
	} expected[] = {
		[CHUNK_SIZE_LF] = {'\n', CHUNK_DATA},
		[CHUNK_DATA_CR] = {'\r', CHUNK_DATA_LF},
		[CHUNK_DATA_LF] = {'\n', CHUNK_SIZE},
		[CHUNK_LAST_CR] = {'\r', CHUNK_LAST_LF},
		[CHUNK_LAST_LF] = {'\n', CHUNK_SIZE},
	};
	if (c->state == CHUNK_SIZE)
		return chunk_take_digit(c, byte);
	if (byte != expected[c->state].byte)
		return -EINVAL;
	c->ended = c->state == CHUNK_LAST_LF;
	if (c->state == CHUNK_SIZE_LF && c->left == 0)
		c->state = CHUNK_LAST_CR;
	else
		c->state = expected[c->state].next;
	if (c->state == CHUNK_SIZE)
		c->digits = 0;
	return 0;
}

ptrdiff_t chunks_pass(struct chunks *c, const uint8_t *data, size_t len)
{
	size_t at = 0;
	while (at < len && !c->ended) {
		if (c->state != CHUNK_DATA) {
			if (chunk_take_byte(c, data[at++]) < 0)
				return -EINVAL;
			continue;
		}
		size_t take = c->left < len - at ? (size_t)c->left : len - at;
		c->left -= take;
		at += take;
		if (c->left == 0)
			c->state = CHUNK_DATA_CR;
	}
	return (ptrdiff_t)at;
}
