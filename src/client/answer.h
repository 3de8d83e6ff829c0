/*
 * Structs from the server's JSON, by tables of fields. Unlike json/json.h's decoder, which guards
 * the server against its callers, this one lets unknown fields pass and takes a field of the wrong
 * type as absent: a client must go on working with a newer server.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "base/buf.h"
#include "bunker.h"

enum answer_kind {
	ANSWER_STRING,  /* const char *, borrowed from the tree; "" when absent */
	ANSWER_BOOL,    /* bool */
	ANSWER_INTEGER, /* int64_t */
	ANSWER_NUMBER   /* double */
};

struct answer_field {
	const char *name;
	enum answer_kind kind;
	size_t offset;
};

/* object may be NULL: then every field is absent. */
void client_answer_decode(
	const cJSON *object, const struct answer_field *fields, size_t count, void *destination);
/* The members of an object whose values are strings; *ret is for free(). -1: out of memory. */
int client_answer_pairs(const cJSON *object, struct bunker_pair **ret, size_t *ret_count);

/* The text of "timeout.idle" in an answer; numbers are printed to number. NULL: not there. */
/* The entries of a list, with commas between them; "" if there is none. */
void client_answer_list(const struct bunker_json *json, const char *name, struct buf *out);
/* The same of header rules: "HOST NAME: VALUE". */
void client_answer_headers(const struct bunker_json *json, const char *name, struct buf *out);
const char *client_answer_text(const struct bunker_json *json, const char *name, char number[32]);

/* A result's JSON is the tree its strings live in. */
static inline struct bunker_json *client_answer_to_json(cJSON *tree)
{
	return (struct bunker_json *)(void *)tree;
}

static inline cJSON *client_answer_from_json(const struct bunker_json *json)
{
	return (cJSON *)(void *)(uintptr_t)json;
}

static inline void client_answer_cleanup(cJSON **tree)
{
	cJSON_Delete(*tree);
}

#define autojson __attribute__((cleanup(client_answer_cleanup))) cJSON
