/*
 * Request heads and chunked bodies, read strictly: whatever two HTTP programs might understand in
 * two ways is refused, so that no proxy in front of us can be made to disagree with us about where
 * a request ends.
 *
 * Refused with 400: bare CR or LF, control bytes, an empty line before the request line, anything
 * but single spaces in the request line, targets that do not start with "/" or hold a fragment or
 * non-ASCII, a space before a colon, folded lines, Host missing from 1.1 or repeated,
 * Content-Length that is repeated, a list, signed or too big, Transfer-Encoding other than
 * "chunked" or together with Content-Length or in HTTP/1.0, chunk extensions and trailers. Other
 * versions get 505, other expectations 417, long targets 414, long heads 431.
 */
#include "http/parser.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

/* Longer than any request line with a target that we take: method and version are short. */
#define REQUEST_LINE_MAX (HTTP_TARGET_MAX + 64)
/* 15 hexadecimal digits cannot overflow 64 bits, and real chunks are far smaller. */
#define CHUNK_DIGITS_MAX 15

static char *cut_first_line(char *text, size_t len, struct http_head *head);
static int parse_fields(char *line, char *end, struct http_head *head, struct error *e);
static int parse_status_line(char *line, struct http_head *head, int *status, struct error *e);
static int parse_request_line(char *line, struct http_head *head, struct error *e);
static int parse_version(const char *text, struct http_head *head, struct error *e);
static int parser_check_target(const char *target, struct error *e);
static int parse_method(const char *text, struct http_head *head, struct error *e);
static int parse_field(char *line, char *end, struct http_head *head, struct error *e);
static int take_framing(struct http_head *head, const struct http_field *field, struct error *e);
static int take_host(struct http_head *head, const char *value, struct error *e);
static int take_length(struct http_head *head, const char *value, struct error *e);
static int take_coding(struct http_head *head, const char *value, struct error *e);
static int take_connection(struct http_head *head, const char *value, struct error *e);
static int take_expect(struct http_head *head, const char *value, struct error *e);
static int check_framing(const struct http_head *head, struct error *e);

static const char *const method_names[] = {
	[HTTP_GET] = "GET",
	[HTTP_HEAD] = "HEAD",
	[HTTP_POST] = "POST",
	[HTTP_PUT] = "PUT",
	[HTTP_PATCH] = "PATCH",
	[HTTP_DELETE] = "DELETE",
	[HTTP_OPTIONS] = "OPTIONS",
};

enum framing {
	FRAMING_HOST = 1,
	FRAMING_LENGTH = 2,
	FRAMING_CODING = 4,
	FRAMING_CONNECTION = 8,
	FRAMING_EXPECT = 16
};

/* The fields that determine a request's host and where the request ends. */
static const struct {
	const char *name;
	enum framing seen;
	bool may_repeat;
	int (*take)(struct http_head *head, const char *value, struct error *e);
} framing_fields[] = {
	{"Host", FRAMING_HOST, false, take_host},
	{"Content-Length", FRAMING_LENGTH, false, take_length},
	{"Transfer-Encoding", FRAMING_CODING, false, take_coding},
	{"Connection", FRAMING_CONNECTION, true, take_connection},
	{"Expect", FRAMING_EXPECT, false, take_expect},
};

int http_scan_head(struct http_head_scan *s, const char *data, size_t len, struct error *e)
{
	while (s->at < len) {
		unsigned char byte = (unsigned char)data[s->at++];
		if (s->at > HTTP_HEAD_MAX)
			return error_set(e, ERROR_HEADERS_TOO_LARGE,
				"the request head is longer than %d bytes", HTTP_HEAD_MAX);
		if (s->after_cr != (byte == '\n'))
			return error_set(e, ERROR_INVALID_REQUEST,
				"lines of the request head must end with CR LF");
		if (byte == '\n') {
			if (s->line == 0)
				return 1;
			s->after_cr = false;
			s->first_line_done = true;
			s->line = 0;
		} else if (byte == '\r') {
			s->after_cr = true;
		} else if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
			return error_set(e, ERROR_INVALID_REQUEST,
				"the request head holds a control character");
		} else if (++s->line > REQUEST_LINE_MAX && !s->first_line_done) {
			return error_set(e, ERROR_URI_TOO_LONG,
				"the request target is longer than %d bytes", HTTP_TARGET_MAX);
		}
	}
	return 0;
}

int http_parse_head(char *text, size_t len, struct http_head *head, struct error *e)
{
	char *fields = cut_first_line(text, len, head);
	int r = parse_request_line(text, head, e);
	if (r == 0)
		r = parse_fields(fields, text + len, head, e);
	return r < 0 ? r : check_framing(head, e);
}

int http_parse_answer(char *text, size_t len, struct http_head *head, int *status, struct error *e)
{
	char *fields = cut_first_line(text, len, head);
	int r = parse_status_line(text, head, status, e);
	if (r == 0)
		r = parse_fields(fields, text + len, head, e);
	if (r == 0 && head->chunked && (head->http10 || http_head_has_length(head)))
		r = error_set(e, ERROR_INVALID_REQUEST, "the answer's length is ambiguous");
	return r;
}

/* The scan promised that every CR is the end of a line and that the last line is empty. */
static char *cut_first_line(char *text, size_t len, struct http_head *head)
{
	char *eol = memchr(text, '\r', len);
	*eol = '\0';
	head->content_length = 0;
	head->chunked = head->expects_continue = false;
	head->seen = 0;
	head->field_count = 0;
	return eol + 2;
}

static int parse_fields(char *line, char *end, struct http_head *head, struct error *e)
{
	while (*line != '\r') {
		char *eol = memchr(line, '\r', (size_t)(end - line));
		int r = parse_field(line, eol, head, e);
		if (r < 0)
			return r;
		line = eol + 2;
	}
	return 0;
}

static int parse_status_line(char *line, struct http_head *head, int *status, struct error *e)
{
	char *code = strchr(line, ' ');
	if (!code || strspn(code + 1, "0123456789") != 3 || code[1] == '0' ||
		(code[4] != ' ' && code[4] != '\0'))
		return error_set(e, ERROR_INVALID_REQUEST, "the status line is malformed");
	*code++ = '\0';
	*status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
	return parse_version(line, head, e);
}

static int parse_request_line(char *line, struct http_head *head, struct error *e)
{
	char *target = strchr(line, ' ');
	char *version = target ? strchr(target + 1, ' ') : NULL;
	head->method = HTTP_GET;
	head->target = "";
	if (!version)
		return error_set(e, ERROR_INVALID_REQUEST, "the request line is malformed");
	*target++ = '\0';
	*version++ = '\0';
	head->target = target;
	int r = parse_version(version, head, e);
	if (r < 0)
		return r;
	r = parser_check_target(target, e);
	if (r < 0)
		return r;
	return parse_method(line, head, e);
}

static int parse_version(const char *text, struct http_head *head, struct error *e)
{
	head->http10 = strcmp(text, "HTTP/1.0") == 0;
	head->keep_alive = !head->http10;
	if (head->http10 || strcmp(text, "HTTP/1.1") == 0)
		return 0;
	if (strncmp(text, "HTTP/", 5) == 0 && strspn(text + 5, ".0123456789") == strlen(text + 5))
		return error_set(
			e, ERROR_VERSION_NOT_SUPPORTED, "only HTTP 1.1 and 1.0 are spoken");
	return error_set(e, ERROR_INVALID_REQUEST, "the request line is malformed");
}

static int parser_check_target(const char *target, struct error *e)
{
	if (target[0] != '/')
		return error_set(e, ERROR_INVALID_REQUEST,
			"the request target must be a path from \"/\" on");
	const char *p = target;
	while (*p > 0x20 && *p < 0x7f && *p != '#')
		p++;
	if (*p)
		return error_set(e, ERROR_INVALID_REQUEST,
			"the request target holds a character that must be percent-encoded");
	if (p - target > HTTP_TARGET_MAX)
		return error_set(e, ERROR_URI_TOO_LONG,
			"the request target is longer than %d bytes", HTTP_TARGET_MAX);
	return 0;
}

static int parse_method(const char *text, struct http_head *head, struct error *e)
{
	if (!http_is_token(text, strlen(text)))
		return error_set(e, ERROR_INVALID_REQUEST, "the request method is malformed");
	head->method_known = false;
	head->method_text = text;
	for (size_t i = 0; i < ARRAY_LEN(method_names) && !head->method_known; i++) {
		if (strcmp(text, method_names[i]) == 0) {
			head->method = (enum http_method)i;
			head->method_known = true;
		}
	}
	return 0;
}

const char *http_method_name(enum http_method method)
{
	return method_names[method];
}

static int parse_field(char *line, char *end, struct http_head *head, struct error *e)
{
	char *colon = memchr(line, ':', (size_t)(end - line));
	if (!colon || !http_is_token(line, (size_t)(colon - line)))
		return error_set(e, ERROR_INVALID_REQUEST, "a header line is malformed");
	if (head->field_count == HTTP_HEADERS_MAX)
		return error_set(e, ERROR_HEADERS_TOO_LARGE, "there are more than %d headers",
			HTTP_HEADERS_MAX);
	char *value = colon + 1;
	while (*value == ' ' || *value == '\t')
		value++;
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*colon = *end = '\0';
	struct http_field *field = &head->fields[head->field_count++];
	*field = (struct http_field){line, value};
	return take_framing(head, field, e);
}

bool http_is_token(const char *s, size_t len)
{
	static const bool token[256] = {['!'] = 1,
		['#' ... '\''] = 1,
		['*'] = 1,
		['+'] = 1,
		['-'] = 1,
		['.'] = 1,
		['0' ... '9'] = 1,
		['A' ... 'Z'] = 1,
		['^' ... 'z'] = 1,
		['|'] = 1,
		['~'] = 1};
	for (size_t i = 0; i < len; i++)
		if (!token[(unsigned char)s[i]])
			return false;
	return len > 0;
}

static int take_framing(struct http_head *head, const struct http_field *field, struct error *e)
{
	for (size_t i = 0; i < ARRAY_LEN(framing_fields); i++) {
		if (strcasecmp(field->name, framing_fields[i].name) != 0)
			continue;
		if ((head->seen & framing_fields[i].seen) && !framing_fields[i].may_repeat)
			return error_set(e, ERROR_INVALID_REQUEST, "%s is there twice",
				framing_fields[i].name);
		head->seen |= framing_fields[i].seen;
		return framing_fields[i].take(head, field->value, e);
	}
	return 0;
}

static int take_host(struct http_head *head, const char *value, struct error *e)
{
	(void)head;
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789-._~%:[]";
	if (strspn(value, allowed) != strlen(value))
		return error_set(e, ERROR_INVALID_REQUEST, "Host is malformed");
	return 0;
}

static int take_length(struct http_head *head, const char *value, struct error *e)
{
	uint64_t length = 0;
	const char *p = value;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(length, 10, &length) ||
			__builtin_add_overflow(length, (uint64_t)(*p - '0'), &length))
			break;
	if (p == value || *p)
		return error_set(e, ERROR_INVALID_REQUEST, "Content-Length is malformed");
	head->content_length = length;
	return 0;
}

static int take_coding(struct http_head *head, const char *value, struct error *e)
{
	if (strcmp(value, "chunked") != 0)
		return error_set(e, ERROR_INVALID_REQUEST,
			"Transfer-Encoding must be \"chunked\" or absent");
	head->chunked = true;
	return 0;
}

static int take_connection(struct http_head *head, const char *value, struct error *e)
{
	(void)e;
	for (const char *p = value; *p; p += strspn(p, ", \t")) {
		size_t len = strcspn(p, ", \t");
		if (len == 5 && strncasecmp(p, "close", len) == 0)
			head->keep_alive = false;
		p += len;
	}
	return 0;
}

static int take_expect(struct http_head *head, const char *value, struct error *e)
{
	if (strcasecmp(value, "100-continue") != 0)
		return error_set(
			e, ERROR_EXPECTATION_FAILED, "the only known expectation is 100-continue");
	/* A 1.0 client would take the interim response for the answer. */
	head->expects_continue = !head->http10;
	return 0;
}

static int check_framing(const struct http_head *head, struct error *e)
{
	if (!head->http10 && !(head->seen & FRAMING_HOST))
		return error_set(e, ERROR_INVALID_REQUEST, "Host is missing");
	if (head->chunked && head->http10)
		return error_set(
			e, ERROR_INVALID_REQUEST, "HTTP/1.0 does not know Transfer-Encoding");
	if (head->chunked && (head->seen & FRAMING_LENGTH))
		return error_set(e, ERROR_INVALID_REQUEST,
			"Content-Length and Transfer-Encoding exclude each other");
	return 0;
}

/* ---- fields ---- */

/* Compares the first letter before calling strcasecmp; its two cases differ in bit 5 only. */
const char *http_head_field(const struct http_head *head, const char *name)
{
	for (size_t i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];
		if (((field->name[0] ^ name[0]) & ~0x20) == 0 && strcasecmp(field->name, name) == 0)
			return field->value;
	}
	return NULL;
}

static bool list_has_token(const char *list, const char *token)
{
	static const char separators[] = ", \t";
	size_t len = strlen(token);
	for (const char *p = list + strspn(list, separators); *p; p += strspn(p, separators)) {
		size_t n = strcspn(p, separators);
		if (n == len && strncasecmp(p, token, len) == 0)
			return true;
		p += n;
	}
	return false;
}

bool http_head_has_token(const struct http_head *head, const char *name, const char *token)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (strcasecmp(head->fields[i].name, name) == 0 &&
			list_has_token(head->fields[i].value, token))
			return true;
	return false;
}

bool http_head_has_length(const struct http_head *head)
{
	return head->seen & FRAMING_LENGTH;
}

/* ---- chunked bodies ---- */

static int take_size_digit(struct http_chunks *c, char byte, struct error *e);
static int step_chunk(struct http_chunks *c, char byte, struct error *e);

ptrdiff_t http_take_chunk(struct http_chunks *c, const char *data, size_t len,
	struct http_piece *piece, struct error *e)
{
	size_t used = 0;
	*piece = (struct http_piece){0};
	while (used < len && c->state != HTTP_CHUNK_DATA && c->state != HTTP_CHUNK_DONE) {
		int r = step_chunk(c, data[used++], e);
		if (r < 0)
			return r;
	}
	if (used < len && c->state == HTTP_CHUNK_DATA) {
		piece->data = data + used;
		piece->len = len - used < c->left ? len - used : (size_t)c->left;
		used += piece->len;
		c->left -= piece->len;
		if (c->left == 0)
			c->state = HTTP_CHUNK_DATA_CR;
	}
	return (ptrdiff_t)used;
}

static int step_chunk(struct http_chunks *c, char byte, struct error *e)
{
	static const struct {
		char byte;
		enum http_chunk_state next;
	} expected[] = {
		[HTTP_CHUNK_SIZE_LF] = {'\n', HTTP_CHUNK_DATA},
		[HTTP_CHUNK_DATA_CR] = {'\r', HTTP_CHUNK_DATA_LF},
		[HTTP_CHUNK_DATA_LF] = {'\n', HTTP_CHUNK_SIZE},
		[HTTP_CHUNK_LAST_CR] = {'\r', HTTP_CHUNK_LAST_LF},
		[HTTP_CHUNK_LAST_LF] = {'\n', HTTP_CHUNK_DONE},
	};
	if (c->state == HTTP_CHUNK_SIZE)
		return take_size_digit(c, byte, e);
	if (byte != expected[c->state].byte)
		return error_set(e, ERROR_INVALID_REQUEST, "the chunked body is malformed");
	c->state = expected[c->state].next;
	if (c->state == HTTP_CHUNK_DATA && c->left == 0)
		c->state = HTTP_CHUNK_LAST_CR;
	if (c->state == HTTP_CHUNK_SIZE)
		c->digits = 0;
	return 0;
}

static int take_size_digit(struct http_chunks *c, char byte, struct error *e)
{
	int digit = http_hex_digit(byte);
	if (digit >= 0 && c->digits < CHUNK_DIGITS_MAX) {
		c->left = (c->digits++ ? c->left * 16 : 0) + (unsigned)digit;
		return 0;
	}
	if (byte != '\r' || c->digits == 0)
		return error_set(e, ERROR_INVALID_REQUEST, "a chunk's size is malformed");
	c->state = HTTP_CHUNK_SIZE_LF;
	return 0;
}

int http_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
		return (c | 0x20) - 'a' + 10;
	return -1;
}
