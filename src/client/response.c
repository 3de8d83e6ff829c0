/*
 * Two kinds of states: those that wait for a line have a handler in the table below, the others
 * pass body bytes on. Strict where clients and proxies could come to disagree on where a response
 * ends: bare LF, folded headers, two lengths, a length next to chunks and odd chunk sizes are
 * refused.
 */
#include "client/response.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "client/failure.h"

typedef int line_handler(struct response *r, char *line, struct bunker_error *e);

static line_handler take_status_line, client_response_take_header, take_chunk_size, take_chunk_end,
	take_trailer;

static line_handler *const line_handlers[] = {
	[RESPONSE_STATUS_LINE] = take_status_line,
	[RESPONSE_HEADER] = client_response_take_header,
	[RESPONSE_CHUNK_SIZE] = take_chunk_size,
	[RESPONSE_CHUNK_END] = take_chunk_end,
	[RESPONSE_TRAILER] = take_trailer,
};

void client_response_init(struct response *r, response_body_fn *body, void *arg)
{
	*r = (struct response){.body = body, .body_arg = arg};
}

void client_response_finish(struct response *r)
{
	buf_finish(&r->line);
}

static int client_response_take_line(
	struct response *r, const char *data, size_t len, size_t *used, struct bunker_error *e)
{
	const char *newline = memchr(data, '\n', len);
	*used = newline ? (size_t)(newline - data) + 1 : len;
	if (*used > RESPONSE_MAX_LINE - r->line.len)
		return client_fail(e, BUNKER_INVALID_RESPONSE,
			"the server sent a header line longer than %d bytes", RESPONSE_MAX_LINE);
	buf_append(&r->line, data, *used);
	if (r->line.failed)
		return client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory");
	if (!newline)
		return 0;

	char *line = r->line.data;
	size_t line_len = r->line.len;
	r->line.len = 0;
	if (line_len < 2 || line[line_len - 2] != '\r' || memchr(line, '\0', line_len))
		return client_fail(
			e, BUNKER_INVALID_RESPONSE, "the server does not speak HTTP/1.1");
	line[line_len - 2] = '\0';
	return line_handlers[r->state](r, line, e);
}

static int client_response_take_body(struct response *r, const char *data, size_t len, size_t *used)
{
	*used = len;
	if (r->state != RESPONSE_UNTIL_CLOSE) {
		if (*used > r->remaining)
			*used = (size_t)r->remaining;
		r->remaining -= *used;
		if (r->remaining == 0)
			r->state = r->state == RESPONSE_CHUNK ? RESPONSE_CHUNK_END : RESPONSE_DONE;
	}
	return r->body(r->body_arg, r->status, data, *used);
}

int client_response_feed(struct response *r, const char *data, size_t len, struct bunker_error *e)
{
	while (len > 0 && r->state != RESPONSE_DONE) {
		size_t used;
		int result = r->state < RESPONSE_BODY
				     ? client_response_take_line(r, data, len, &used, e)
				     : client_response_take_body(r, data, len, &used);
		if (result < 0)
			return result;
		data += used;
		len -= used;
	}
	return 0;
}

int client_response_end(struct response *r, struct bunker_error *e)
{
	if (r->state == RESPONSE_UNTIL_CLOSE)
		r->state = RESPONSE_DONE;
	if (r->state == RESPONSE_DONE)
		return 0;
	return client_fail(e, BUNKER_CONNECTION_LOST,
		r->status ? "the server closed the connection in the middle of its answer"
			  : "the server closed the connection without an answer");
}

static int take_status_line(struct response *r, char *line, struct bunker_error *e)
{
	/* "HTTP/1.1 200 OK"; the reason may be missing. */
	const char *digits = line + strlen("HTTP/1.x ");
	if (strncmp(line, "HTTP/1.", 7) != 0 || strlen(line) < strlen("HTTP/1.x 200") ||
		line[8] != ' ' || strspn(digits, "0123456789") != 3 || digits[0] == '0')
		return client_fail(
			e, BUNKER_INVALID_RESPONSE, "the server does not speak HTTP/1.1");
	r->status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
	r->header_count = 0;
	r->chunked = r->has_length = false;
	r->state = RESPONSE_HEADER;
	return 0;
}

static void client_response_begin_body(struct response *r)
{
	if (r->status < 200)
		r->state = RESPONSE_STATUS_LINE; /* interim: the real one follows */
	else if (r->status == 204 || r->status == 304)
		r->state = RESPONSE_DONE;
	else if (r->chunked)
		r->state = RESPONSE_CHUNK_SIZE;
	else if (!r->has_length)
		r->state = RESPONSE_UNTIL_CLOSE;
	else
		r->state = r->remaining > 0 ? RESPONSE_BODY : RESPONSE_DONE;
}

static unsigned digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (unsigned)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (unsigned)(c - 'A') + 10;
	return UINT_MAX;
}

/* Digits only: strtoull would let signs, spaces and "0x" pass. */
static bool client_response_parse_number(const char *text, unsigned base, uint64_t *ret)
{
	uint64_t value = 0;
	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned digit = digit_value(*text);
		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
			__builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return true;
}

static int take_content_length(struct response *r, const char *value, struct bunker_error *e)
{
	if (r->has_length || r->chunked || !client_response_parse_number(value, 10, &r->remaining))
		return client_fail(
			e, BUNKER_INVALID_RESPONSE, "the server sent an unusable Content-Length");
	r->has_length = true;
	return 0;
}

static int take_transfer_encoding(struct response *r, const char *value, struct bunker_error *e)
{
	if (r->has_length || r->chunked || strcasecmp(value, "chunked") != 0)
		return client_fail(e, BUNKER_INVALID_RESPONSE,
			"the server sent an unusable Transfer-Encoding");
	r->chunked = true;
	return 0;
}

static const struct {
	const char *name;
	int (*take)(struct response *r, const char *value, struct bunker_error *e);
} framing_headers[] = {
	{"Content-Length", take_content_length},
	{"Transfer-Encoding", take_transfer_encoding},
};

static int client_response_take_header(struct response *r, char *line, struct bunker_error *e)
{
	if (!*line) {
		client_response_begin_body(r);
		return 0;
	}
	size_t name_len = strcspn(line, ": \t");
	if (++r->header_count > RESPONSE_MAX_HEADERS || name_len == 0 || line[name_len] != ':')
		return client_fail(
			e, BUNKER_INVALID_RESPONSE, "the server sent a malformed header");
	line[name_len] = '\0';
	char *value = line + name_len + 1;
	value += strspn(value, " \t");
	size_t end = strlen(value);
	while (end > 0 && (value[end - 1] == ' ' || value[end - 1] == '\t'))
		value[--end] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(framing_headers); i++)
		if (strcasecmp(line, framing_headers[i].name) == 0)
			return framing_headers[i].take(r, value, e);
	return 0;
}

static int take_chunk_size(struct response *r, char *line, struct bunker_error *e)
{
	line[strcspn(line, ";")] = '\0'; /* extensions mean nothing to us */
	if (!client_response_parse_number(line, 16, &r->remaining))
		return client_fail(e, BUNKER_INVALID_RESPONSE, "the server sent a bad chunk size");
	r->state = r->remaining > 0 ? RESPONSE_CHUNK : RESPONSE_TRAILER;
	return 0;
}

static int take_chunk_end(struct response *r, char *line, struct bunker_error *e)
{
	if (*line)
		return client_fail(
			e, BUNKER_INVALID_RESPONSE, "the server sent a chunk longer than it said");
	r->state = RESPONSE_CHUNK_SIZE;
	return 0;
}

static int take_trailer(struct response *r, char *line, struct bunker_error *e)
{
	if (!*line)
		r->state = RESPONSE_DONE;
	else if (++r->header_count > RESPONSE_MAX_HEADERS)
		return client_fail(e, BUNKER_INVALID_RESPONSE, "the server sent too many trailers");
	return 0;
}
