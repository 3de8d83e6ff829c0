/*
 * Heads of HTTP/1 requests, read strictly: what two programs could understand in two ways is
 * refused, so that the server takes the same Host and the same end of a request as we do. A target
 * is a path: no CONNECT, no absolute form, no "*", no HTTP/2.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "egress/first.h"

#define TLS_HANDSHAKE    22
#define METHOD_MAX       20
#define LENGTH_MAX       18 /* digits, which cannot overflow 64 bits */
#define CHUNK_DIGITS_MAX 15

/* ---- what it is ---- */

static const char *const methods[] = {"GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ",
	"OPTIONS ", "CONNECT ", "TRACE ", "PRI ", "PROPFIND ", "PROPPATCH ", "MKCOL ", "COPY ",
	"MOVE ", "LOCK ", "UNLOCK ", "SEARCH ", "REPORT "};

/* Whether it begins with a method that is known, or is the beginning of one. */
static bool begins_with_method(const uint8_t *data, size_t len, bool *is_part)
{
	*is_part = false;
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		size_t size = strlen(methods[i]);
		if (strncasecmp((const char *)data, methods[i], len < size ? len : size) != 0)
			continue;
		if (len >= size)
			return true;
		*is_part = true;
	}
	return false;
}

/* Whether a line can begin a request: some token, then a space. */
static bool begins_with_token(const uint8_t *line, size_t len)
{
	for (size_t i = 0; i < len && i <= METHOD_MAX; i++)
		if (line[i] == ' ' || line[i] == '\t')
			return i > 0;
		else if (!isalnum(line[i]) && !strchr("!#$%&'*+-.^_`|~", line[i]))
			return false;
	return len <= METHOD_MAX;
}

/* Whether " HTTP/" is in the line: servers take methods that nobody knows. */
static bool names_http(const uint8_t *line, size_t len)
{
	static const char version[] = " HTTP/";
	for (size_t i = 0; i + sizeof version - 1 <= len; i++)
		if (strncasecmp((const char *)line + i, version, sizeof version - 1) == 0)
			return true;
	return false;
}

enum first_kind first_look(const uint8_t *data, size_t len)
{
	size_t skip = 0, end;
	bool is_part;
	if (len > 0 && data[0] == TLS_HANDSHAKE)
		return FIRST_TLS;
	while (skip < len && data[skip] && strchr(" \t\r\n", data[skip]))
		skip++; /* servers skip empty lines before a request */
	if (begins_with_method(data + skip, len - skip, &is_part))
		return FIRST_HTTP;
	for (end = skip; end < len && data[end] != '\n'; end++)
		if (data[end] < 0x20 && data[end] != '\r' && data[end] != '\t')
			return FIRST_OTHER;
	if (!begins_with_token(data + skip, end - skip))
		return FIRST_OTHER;
	if (names_http(data + skip, end - skip))
		return FIRST_HTTP;
	if (end < len || len >= REQUEST_MAX)
		return FIRST_OTHER;
	return is_part ? FIRST_MORE : FIRST_TEXT;
}

/* ---- lines ---- */

static bool is_token(const char *text, size_t len)
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
	if (!target || target - line > METHOD_MAX || !is_token(line, (size_t)(target - line)) ||
		target + 1 == end || target[1] != '/')
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
	r->is_name = first_settle_name((const uint8_t *)value, host, r->host);
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

static bool field_is(const char *name, size_t len, const char *wanted)
{
	return len == strlen(wanted) && strncasecmp(name, wanted, len) == 0;
}

static int take_field(struct request *r, const char *line, size_t len, bool *has_length)
{
	const char *colon = memchr(line, ':', len);
	size_t name = colon ? (size_t)(colon - line) : 0;
	if (!colon || !is_token(line, name))
		return -EINVAL;
	const char *value = colon + 1, *end = line + len;
	while (value < end && (*value == ' ' || *value == '\t'))
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	if (field_is(line, name, "Host"))
		return take_host(r, value, (size_t)(end - value));
	if (field_is(line, name, "Content-Length"))
		return take_length(r, value, (size_t)(end - value), has_length);
	if (field_is(line, name, "Transfer-Encoding"))
		return take_coding(r, value, (size_t)(end - value));
	if (field_is(line, name, "Upgrade"))
		return take_upgrade(r, value, (size_t)(end - value));
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
