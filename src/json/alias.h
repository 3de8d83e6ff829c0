/*
 * Objects of a foreign API, described by what it calls our fields. An alias names a field by the
 * member that it describes, and says what differs: the name, the unit, the words of an enum, what
 * an empty value looks like. Kind, place and limits are those of the field's row (base/field.h).
 *
 * One table serves both directions. What depends on more than one record (a token, an address) is
 * no alias: the dialect writes it beside the table.
 */
#pragma once

#include "json/json.h"

#define JSON_ALIASES_MAX 64 /* of one table */

/* Says how a value of 0 or "" is written. */
enum json_empty {
	JSON_EMPTY_SHOWN, /* like any other */
	JSON_EMPTY_OMITTED,
	JSON_EMPTY_NULL
};

struct json_alias {
	const char *name;    /* theirs; "timeout.idle" is `idle` in the object `timeout` */
	size_t offset, size; /* JSON_ALIAS(…); without a size it is no member of the record */
	/*
	 * Of a request: FIELD_CREATE or FIELD_CHANGE, FIELD_REQUIRED, FIELD_NOT_EMPTY. An alias
	 * with one of the first two is part of answers only if it has FIELD_SHOWN, too.
	 */
	unsigned flags;
	int64_t min, max; /* instead of the field's limits, in its unit, unless both are 0 */
	int64_t scale;    /* units per plain JSON number: 1000 for seconds of a field in ms */
	const char *const *names; /* of the values of an enum, or of false and true */
	enum json_empty empty;
	const char *prefix;   /* in front of a text: "sbx_" */
	const char *constant; /* JSON text of a member that says the same of every record */
	bool (*shown_if)(const void *record); /* NULL: always */
	json_own_fn
		*put; /* writes the value; NULL: as the kind says. The field is NULL without one */
};

#define JSON_ALIAS(type, member)                                                                   \
	.offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

struct json_alias_table {
	const struct field_table *model;
	const struct json_alias_table *first; /* whose members come before these; NULL: none */
	const struct json_alias *aliases;
	size_t count;
};

/* The row of an alias's field; NULL: it has no member. Aborts if the model has no such row. */
const struct field *json_alias_field(const struct json_alias_table *t, const struct json_alias *a);

/*
 * Makes rows for json_decode_parts of the aliases that have all of `flags`, under their names.
 * Rules for texts are left out: that API has its own. Returns the number of rows.
 */
size_t json_alias_rows(
	const struct json_alias_table *t, unsigned flags, struct field rows[JSON_ALIASES_MAX]);

/* The members of an object, in the order of the table. */
void json_encode_alias(struct json_writer *w, const struct json_alias_table *t, const void *record);
/* Encodes the members with braces around them. */
void json_encode_alias_object(
	struct json_writer *w, const struct json_alias_table *t, const void *record);
