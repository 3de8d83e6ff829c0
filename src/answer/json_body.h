/*
 * Request bodies that are one JSON object. What is parsed lives in the call's memory, so that the
 * operation's request may point into it. On failure *e is filled: pass it to answer_refuse.
 */
#pragma once

#include "answer/answer.h"
#include "json/json.h"

/* Parses other JSON into the call's memory. */
const cJSON *answer_parse_json(struct answer *a, const char *text, size_t len, struct error *e);
/* Returns the object; an empty body is {}. Content-Type does not matter. */
const cJSON *answer_json(struct answer *a, struct error *e);
/* Returns the object; the body must be there and must be called application/json. */
const cJSON *answer_typed_json(struct answer *a, struct error *e);
/* Decodes a body that may be left out; *ret then keeps its defaults. */
int answer_decode_json(struct answer *a, const struct json_field *fields, size_t count, void *ret,
	struct error *e);
