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
#include "json/scan.h"

#define JSON_PUSH_DEPTH   16
#define JSON_PUSH_KEY_MAX 256

struct json_push {
	struct buf in;
	struct json_scan scan;
	struct buf text; /* of JSON_KEY, JSON_PIECE (without escapes), JSON_LITERAL; until the next
			    step */
};

void json_push_add(struct json_push *p, const char *bytes, size_t len);
/* Returns the number of bytes added but not yet parsed. */
size_t json_push_waiting(const struct json_push *p);
/* There will be no more; a number at the very end is complete then. */
void json_push_end(struct json_push *p);
/*
 * Returns a token, or -1 with *e: invalid_json. Keys come whole. After json_push_end there is no
 * JSON_MORE.
 */
int json_push_step(struct json_push *p, struct error *e);
void json_push_finish(struct json_push *p);
