/*
 * JSON in and out.
 *
 * In: json_parse refuses what agents' clients never mean and parsers disagree about: text that is
 * not UTF-8, NUL in a string, nesting deeper than JSON_MAX_DEPTH, duplicate keys, trailing text,
 * numbers that are not finite. json_decode fills a struct from an object by a table of fields, so
 * that bad input is refused in one place with the field's name.
 *
 * Out: a writer that appends to a buffer. It places commas by itself and escapes everything; bytes
 * that are not UTF-8 become U+FFFD.
 */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/field.h"
#include "base/scratch.h"

#define JSON_MAX_DEPTH 64
#define JSON_MAX_KEYS  10000 /* of all objects together */
#define JSON_MAX_VALUES                                                                            \
	100000 /* each costs a hundred bytes of memory for as few as two of text                   \
		*/

/* On success *ret is owned by the caller (cJSON_Delete). */
int json_parse(const char *text, size_t len, cJSON **ret, struct error *e);

/*
 * Absent and null fields leave the destination alone. A field that no table names is refused.
 * `path` goes in front of the field's name in errors ("resources."), "" at the top.
 */
int json_decode(const cJSON *object, const struct json_field *fields, size_t count,
	const char *path, void *destination, struct error *e);

/*
 * Same as json_decode, but ignores unknown fields: newer clients of a foreign protocol may send
 * fields that this server does not know.
 */
int json_decode_known(const cJSON *object, const struct json_field *fields, size_t count,
	const char *path, void *destination, struct error *e);

/* A table that takes part in decoding an object, and the struct that it fills. */
struct json_part {
	const struct field *fields;    /* of an object, or */
	const struct json_field *rows; /* of this request alone */
	size_t count;
	unsigned flags; /* only rows with all of these take part */
	void *destination;
	struct field_set *given; /* the rows that were there; may be NULL */
};

/*
 * Fills several structs from one object, in which a row "a.b" is the member b of the object a. What
 * has to be made of the tree (texts of maps and of JSON) is taken from the memory. A field that is
 * in none of the tables is refused. The parts are closed by one without fields.
 */
int json_decode_parts(const cJSON *object, const struct json_part *parts, struct scratch *memory,
	struct error *e);

/* Same as json_decode_parts, but ignores unknown fields. */
int json_decode_known_parts(const cJSON *object, const struct json_part *parts,
	struct scratch *memory, struct error *e);

/* NAME=VALUE strings, NULL-terminated, from a FIELD_STRING_MAP; a NULL map leaves *ret alone. */
int json_environment(const cJSON *map, const char *field, struct scratch *memory,
	const char *const **ret, struct error *e);
/* As json_environment, but the strings are packed one behind the other. */
int json_strings(const cJSON *map, const char *field, struct scratch *memory, struct strings *ret,
	struct error *e);
/* Header rules, as FIELD_HEADERS has them, of an array of {host, headers}. */
int json_headers_decode(const cJSON *array, const char *field, struct scratch *memory,
	struct strings *ret, struct error *e);
/* A value as the text it is kept as; NULL leaves *ret alone. */
int json_text(const cJSON *value, const char *field, size_t max, struct scratch *memory,
	const char **ret, struct error *e);
int json_bytes(const char *base64, const char *field, struct scratch *memory, const char **bytes,
	size_t *len, struct error *e);

struct json_writer {
	struct buf *out;
	bool need_comma;
};

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);
void json_key_n(struct json_writer *w, const char *key, size_t len);
/* A key of our own, in which nothing has to be escaped. */
void json_key_plain(struct json_writer *w, const char *key, size_t len);
/* NULL is written as null. */
void json_string(struct json_writer *w, const char *value);
void json_string_n(struct json_writer *w, const char *value, size_t len);
void json_base64(struct json_writer *w, const void *data, size_t len);
/* Encodes bytes that come in pieces as base64; the rest is zeroed before the first one. */
struct json_base64_rest {
	unsigned char bytes[3];
	size_t len;
};
void json_begin_base64(struct json_writer *w);
void json_add_base64(
	struct json_writer *w, struct json_base64_rest *rest, const void *data, size_t len);
void json_end_base64(struct json_writer *w, struct json_base64_rest *rest);
void json_int(struct json_writer *w, int64_t value);
void json_bool(struct json_writer *w, bool value);
void json_null(struct json_writer *w);
void json_time(struct json_writer *w, int64_t wall_ms);
/* A value that is JSON text already, such as metadata kept as it came. */
void json_raw(struct json_writer *w, const char *json);
void json_raw_n(struct json_writer *w, const char *json, size_t len);
/*
 * Returns whether foreign text may be written by json_raw_n: one JSON value, in UTF-8, not deeper
 * than JSON_MAX_DEPTH and without line breaks. Builds no tree, so the text may be large.
 */
bool json_is_line(const char *text, size_t len);
/* Appends JSON with nothing beyond ASCII in it: other characters as \uXXXX. */
void json_append_ascii(struct buf *out, const char *json, size_t len);

/* key and value at once */
void json_put_string(struct json_writer *w, const char *key, const char *value);
void json_put_int(struct json_writer *w, const char *key, int64_t value);
void json_put_bool(struct json_writer *w, const char *key, bool value);
/* NAME=VALUE strings one behind the other, each with its NUL, as members, or as an object. */
void json_env_members(struct json_writer *w, const char *env, size_t len);
void json_env(struct json_writer *w, const char *env, size_t len);
void json_put_env(struct json_writer *w, const char *key, const char *env, size_t len);
/* Header rules as an array of {host, headers}. */
void json_headers(struct json_writer *w, const struct strings *list);
void json_put_time(struct json_writer *w, const char *key, int64_t wall_ms);

/*
 * The objects that are open while members with names such as "timeout.idle" are written: "timeout."
 * A member that is in others closes and opens what is needed.
 */
struct json_path {
	const char *name;
	size_t len; /* with the last dot; 0: none is open */
};
void json_path_enter(struct json_writer *w, struct json_path *path, const char *name, size_t len);
/* Enters the objects of a dotted name and writes its last part as a key. */
void json_path_key(struct json_writer *w, struct json_path *path, const char *name);
void json_path_end(struct json_writer *w, struct json_path *path);

/*
 * The members of an object, by its table: the rows that are shown, in their order. Rows of kind
 * FIELD_OWN are written by `own`, which may be NULL when there are none.
 */
typedef void json_own_fn(struct json_writer *w, const struct field *f, const void *record);
void json_encode(
	struct json_writer *w, const struct field_table *t, const void *record, json_own_fn *own);
/* Encodes the members with braces around them. */
void json_encode_object(
	struct json_writer *w, const struct field_table *t, const void *record, json_own_fn *own);
/* The schema of the rows that have all of `flags`; of an answer with FIELD_SHOWN, else a request.
 */
void json_schema(struct json_writer *w, const struct field_table *t, unsigned flags);
/* Writes a value without its key. */
void json_encode_value(struct json_writer *w, const struct field *f, const void *record);
