/*
 * One description of a field: a row says where a member lives in a C struct, what kind of value it
 * is, what limits it has, and what it is called in JSON, in SQL and on the command line. Whoever
 * needs a list of an object's fields walks the rows: the JSON decoder and encoder (json/json.h),
 * the tables of the store (store/table.h), the options of the CLI, the printer of schemas.
 *
 * A row is constant data. This header knows neither JSON nor SQL: a kind says what the C type is
 * and how a person writes the value.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum field_kind {
	FIELD_TEXT,     /* const char *; NULL is taken for "" */
	FIELD_BOOL,     /* bool */
	FIELD_INTEGER,  /* int64_t */
	FIELD_DURATION, /* int64_t milliseconds, written "10m" */
	FIELD_BYTES,    /* int64_t bytes, written "512Mi" */
	FIELD_CPU,      /* int64_t millicores, written "500m" */
	FIELD_OBJECT,   /* const cJSON *: the reader looks into it himself, as for the next three */
	FIELD_ARRAY,    /* const cJSON * */
	FIELD_STRING_MAP, /* const cJSON * */
	FIELD_ANY,        /* const cJSON * */
	FIELD_TIME,       /* int64_t milliseconds of the wall clock, written as RFC 3339 */
	FIELD_MICROS,     /* int64_t microseconds, written as milliseconds with three digits */
	FIELD_ENUM,       /* an enum, written as the one of `names` */
	FIELD_ENV,        /* struct strings of NAME=VALUE, written as a map */
	FIELD_LIST,       /* struct strings, written as an array */
	FIELD_HEADERS,    /* struct strings of "HOST NAME: VALUE", written as an array of {host,
			     headers} */
	FIELD_JSON,       /* const char *: an object, kept as the text that came */
	FIELD_CHARS,      /* char[], in place: ids, reasons */
	FIELD_COUNT,      /* uint64_t below 2^63 */
	FIELD_CODE,       /* int64_t, written as the text that `format` makes of it */
	FIELD_CONSTANT,   /* in no struct: always `missing` */
	FIELD_OWN,        /* in no struct: written by a function of the API */
};

enum field_flags {
	FIELD_REQUIRED = 1,
	FIELD_NOT_EMPTY = 2,
	FIELD_CREATE = 4,      /* a request that creates the object may give it */
	FIELD_CHANGE = 8,      /* a PATCH may give it */
	FIELD_SHOWN = 16,      /* part of the answer */
	FIELD_OMIT_EMPTY = 32, /* unless it is 0 or "" */
	FIELD_KEY = 64,        /* SQL: the primary key */
	FIELD_FIXED = 128,     /* SQL: written with a new row, never by a later put */
	FIELD_SETTING = FIELD_CREATE | FIELD_CHANGE | FIELD_SHOWN,
};

/* A row of a table that serves a single request: only the members that the decoder needs. */
struct json_field {
	const char
		*name; /* in JSON; "timeout.idle" is `idle` in the object `timeout`. NULL: none */
	enum field_kind kind;
	size_t offset;
	unsigned flags;
	/*
	 * For numbers the limits, unless both are 0. For texts, arrays and maps max is the length
	 * in bytes or entries (0: 65,536), and min is not looked at.
	 */
	int64_t min, max;
};

#define FIELD_CODE_SIZE 16

/* A row of an object's table. */
struct field {
	struct json_field;
	size_t size;              /* of the member; 0 in tables that only decode */
	const char *const *names; /* of an enum, closed by NULL */
	const char *missing;      /* the text where none was given; NULL: "" */
	int (*check)(const char *text, const char *field, struct error *e);
	/* Whether an answer has it, where that depends on other members; NULL: it has. */
	bool (*shown_if)(const void *record);
	void (*format)(int64_t code, char out[FIELD_CODE_SIZE]); /* of a FIELD_CODE */
	int64_t scale;      /* units per plain JSON number (1000: seconds for a field in ms); 0: not
			       scaled */
	const char *column; /* in SQL; NULL: not stored */
	const char *computed; /* SQL: read by this expression, never written */
	/* Command line: --option VALUE, and the title that `bunker info` prints. */
	char letter;
	const char *option, *value, *help, *title;
	const char *about; /* a sentence for readers of the schema */
};

/* The rows of an object whose struct has `size` bytes. */
struct field_table {
	const struct field *fields;
	size_t count;
	size_t size;
};

/*
 * A row's place in a struct: kind, offset and size in one, refused by the compiler when the member
 * does not have the kind's type.
 */
#define FIELD_AT(KIND, type, member)                                                               \
	.kind = FIELD_##KIND, .size = sizeof(((type *)0)->member),                                 \
	.offset = _Generic(&((type *)0)->member, FIELD_TYPE_##KIND *                               \
			   : offsetof(type, member))
#define FIELD_CHARS_AT(type, member)                                                               \
	.kind = FIELD_CHARS, .size = sizeof(((type *)0)->member),                                  \
	.offset = _Generic(((type *)0)->member, char *: offsetof(type, member))

#define FIELD_TYPE_TEXT     const char *
#define FIELD_TYPE_JSON     const char *
#define FIELD_TYPE_BOOL     bool
#define FIELD_TYPE_INTEGER  int64_t
#define FIELD_TYPE_COUNT    uint64_t
#define FIELD_TYPE_CODE     int64_t
#define FIELD_TYPE_DURATION int64_t
#define FIELD_TYPE_BYTES    int64_t
#define FIELD_TYPE_CPU      int64_t
#define FIELD_TYPE_TIME     int64_t
#define FIELD_TYPE_MICROS   int64_t
#define FIELD_TYPE_ENUM     unsigned
#define FIELD_TYPE_ENV      struct strings
#define FIELD_TYPE_LIST     struct strings
#define FIELD_TYPE_HEADERS  struct strings

/* Strings one behind the other, each with its NUL. */
struct strings {
	char *data;
	size_t len;
};

/* The set of a table's rows that a request gave: one bit per row. */
#define FIELD_SET_MAX 128
struct field_set {
	uint64_t bits[FIELD_SET_MAX / 64];
};

void field_set_add(struct field_set *set, size_t row);
void field_set_remove(struct field_set *set, size_t row);
bool field_set_has(const struct field_set *set, size_t row);
/* The row of the member at this offset; -1: none. */
int field_at(const struct field_table *t, size_t offset);

/* The storage class of a value; every database supports these three. */
enum field_storage {
	STORED_NUMBER,
	STORED_TEXT,
	STORED_BYTES
};
enum field_storage field_storage(const struct field *f);

/* Numbers, enums and flags, as the struct at `from` has them. */
int64_t field_number(const struct field *f, const void *from);
void field_set_number(const struct field *f, void *to, int64_t number);
/* Texts of every kind; never NULL. */
const char *field_text(const struct field *f, const void *from);
/* 0, "" or no entries. */
bool field_is_empty(const struct field *f, const void *from);
/* The index of a text among a row's names; -1: none of them. */
int field_enum_of(const struct field *f, const char *text);

/*
 * Copies the rows that have all of `flags`, below the offset `end`. Copied texts are owned by `to`,
 * all others are borrowed; previous values in `to` are overwritten, not freed.
 */
void fields_copy(
	const struct field_table *t, unsigned flags, size_t end, void *to, const void *from);
/* Copies the rows of `given` and frees the values that they replace in `to`. */
void fields_change(
	const struct field_table *t, const struct field_set *given, void *to, const void *from);
void fields_free(const struct field_table *t, void *record);
