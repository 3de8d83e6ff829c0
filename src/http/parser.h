/*
 * The grammar of HTTP/1.1 requests, without sockets: bytes in, a request head or body pieces out.
 *
 * A head is taken in two steps. http_scan_head looks at each byte once, as it arrives, and finds
 * the head's end or refuses it; http_parse_head then splits the complete text in place. So the
 * outcome never depends on how the network cut the bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "http/http.h"

#define HTTP_HEAD_MAX    32768
#define HTTP_TARGET_MAX  8192
#define HTTP_HEADERS_MAX 100

struct http_field {
	const char *name;
	const char *value;
};

struct http_head {
	enum http_method method;
	bool method_known; /* false: a valid token, but not a method we support */
	const char *method_text;
	bool http10; /* the client speaks HTTP/1.0 */
	bool keep_alive;
	bool chunked;
	bool expects_continue;
	uint64_t content_length; /* 0 when there is none, or when chunked */
	const char *target;
	unsigned seen; /* which of the framing fields have come */
	size_t field_count;
	struct http_field fields[HTTP_HEADERS_MAX];
};

struct http_head_scan {
	size_t at;   /* bytes looked at so far */
	size_t line; /* bytes in the current line */
	bool first_line_done;
	bool after_cr;
};

/*
 * Goes on from s->at; data always starts at the head's first byte. 1: the head is data[0..s->at),
 * the blank line included; 0: more bytes are needed; negative: refused, *e says why.
 */
int http_scan_head(struct http_head_scan *s, const char *data, size_t len, struct error *e);
/* Splits a scanned head. The result points into text, which is cut into strings. */
int http_parse_head(char *text, size_t len, struct http_head *head, struct error *e);

/*
 * Parses the head of an answer, whose status is 100 to 999. Sets only the version, the framing and
 * the fields of `head`.
 */
int http_parse_answer(char *text, size_t len, struct http_head *head, int *status, struct error *e);

/* Returns the first field of this name, in any case, or NULL. */
const char *http_head_field(const struct http_head *head, const char *name);
/* Returns whether a field that is a list, such as Connection, has this token in any case. */
bool http_head_has_token(const struct http_head *head, const char *name, const char *token);
/* Returns whether a Content-Length was given. */
bool http_head_has_length(const struct http_head *head);

/* A name as RFC 9110 calls a token: of header fields and methods. */
bool http_is_token(const char *s, size_t len);
const char *http_method_name(enum http_method method);
/* 0 to 15, or -1. */
int http_hex_digit(char c);

enum http_chunk_state {
	HTTP_CHUNK_SIZE,
	HTTP_CHUNK_SIZE_LF,
	HTTP_CHUNK_DATA,
	HTTP_CHUNK_DATA_CR,
	HTTP_CHUNK_DATA_LF,
	HTTP_CHUNK_LAST_CR,
	HTTP_CHUNK_LAST_LF,
	HTTP_CHUNK_DONE
};

struct http_chunks {
	enum http_chunk_state state;
	unsigned digits;
	uint64_t left; /* of the current chunk, after the piece just given */
};

struct http_piece {
	const char *data;
	size_t len;
};

/*
 * Takes bytes until one piece of body is found, the body ends (state HTTP_CHUNK_DONE) or the input
 * does. Returns how many bytes were taken, or a negative value with *e.
 */
ptrdiff_t http_take_chunk(struct http_chunks *c, const char *data, size_t len,
	struct http_piece *piece, struct error *e);
