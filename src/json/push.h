/*
 * JSON that comes in pieces of any size and is never held as a whole: bytes are added, steps take
 * them apart into tokens, until they want more. Strings of any length come in pieces. As strict as
 * json_parse: UTF-8 only, no NUL, no trailing text, no nesting beyond JSON_PUSH_DEPTH.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define JSON_PUSH_DEPTH       16
#define JSON_PUSH_KEY_MAX     256
#define JSON_PUSH_LITERAL_MAX 64

enum json_token {
	JSON_MORE, /* nothing can be said before more bytes come */
	JSON_BEGIN_OBJECT,
	JSON_END_OBJECT,
	JSON_BEGIN_ARRAY,
	JSON_END_ARRAY,
	JSON_KEY,      /* text, with a NUL behind */
	JSON_PIECE,    /* text: some of a string, without its escapes */
	JSON_TEXT_END, /* of a string; an empty one has no piece */
	JSON_LITERAL,  /* text, with a NUL behind: a number, true, false or null */
	JSON_DONE      /* the value is complete; only blanks may follow */
};

struct json_push {
	struct buf in;
	size_t at; /* what was taken of it */
	unsigned depth;
	uint32_t objects; /* a bit for each level: it is an object */
	uint8_t expects;
	bool in_key, ended;
	struct buf text; /* valid until the next step */
};

void json_push_add(struct json_push *p, const char *bytes, size_t len);
/* What was added and is not taken apart yet. */
size_t json_push_waiting(const struct json_push *p);
/* There will be no more; a number at the very end is complete then. */
void json_push_end(struct json_push *p);
/* A token, or -1 with *e: invalid_json. After json_push_end there is no JSON_MORE. */
int json_push_step(struct json_push *p, struct error *e);
void json_push_finish(struct json_push *p);
