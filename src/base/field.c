#include "base/field.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER(type, record, f)       ((type *)((char *)(record) + (f)->offset))
#define CONST_MEMBER(type, record, f) ((const type *)((const char *)(record) + (f)->offset))
#define TEXT_MEMBER(record, f)        ((const char *const *)((const char *)(record) + (f)->offset))

void field_set_add(struct field_set *set, size_t row)
{
	assert(row < FIELD_SET_MAX && "a set has a bit for each row of the longest table");
	set->bits[row / 64] |= UINT64_C(1) << row % 64;
}

void field_set_remove(struct field_set *set, size_t row)
{
	if (row < FIELD_SET_MAX)
		set->bits[row / 64] &= ~(UINT64_C(1) << row % 64);
}

bool field_set_has(const struct field_set *set, size_t row)
{
	return row < FIELD_SET_MAX && set->bits[row / 64] >> row % 64 & 1;
}

int field_at(const struct field_table *t, size_t offset)
{
	for (const struct field *f = t->fields; f < t->fields + t->count; f++)
		if (f->offset == offset && f->size)
			return (int)(f - t->fields);
	return -1;
}

enum field_storage field_storage(const struct field *f)
{
	switch (f->kind) {
	case FIELD_TEXT:
	case FIELD_JSON:
	case FIELD_CHARS:
	case FIELD_ENUM:
	case FIELD_CONSTANT:
		return STORED_TEXT;
	case FIELD_ENV:
	case FIELD_LIST:
	case FIELD_HEADERS:
		return STORED_BYTES;
	default:
		return STORED_NUMBER;
	}
}

int64_t field_number(const struct field *f, const void *from)
{
	if (f->kind == FIELD_BOOL)
		return *CONST_MEMBER(bool, from, f);
	if (f->kind == FIELD_ENUM)
		return *CONST_MEMBER(unsigned, from, f);
	return *CONST_MEMBER(int64_t, from, f);
}

void field_set_number(const struct field *f, void *to, int64_t number)
{
	if (f->kind == FIELD_BOOL)
		*MEMBER(bool, to, f) = number != 0;
	else if (f->kind == FIELD_ENUM)
		*MEMBER(unsigned, to, f) = (unsigned)number;
	else
		*MEMBER(int64_t, to, f) = number;
}

const char *field_text(const struct field *f, const void *from)
{
	const char *text = f->missing;
	if (f->kind == FIELD_CHARS)
		text = CONST_MEMBER(char, from, f);
	else if (f->kind == FIELD_ENUM)
		text = f->names[*CONST_MEMBER(unsigned, from, f)];
	else if (f->kind != FIELD_CONSTANT && *TEXT_MEMBER(from, f))
		text = *TEXT_MEMBER(from, f);
	return text ? text : "";
}

bool field_is_empty(const struct field *f, const void *from)
{
	switch (field_storage(f)) {
	case STORED_BYTES:
		return CONST_MEMBER(struct strings, from, f)->len == 0;
	case STORED_TEXT:
		return f->kind != FIELD_ENUM && !field_text(f, from)[0];
	default:
		return field_number(f, from) == 0;
	}
}

int field_enum_of(const struct field *f, const char *text)
{
	for (int i = 0; f->names[i]; i++)
		if (strcmp(f->names[i], text) == 0)
			return i;
	return -1;
}

static bool is_owned(const struct field *f)
{
	return f->kind == FIELD_TEXT || f->kind == FIELD_JSON || field_storage(f) == STORED_BYTES;
}

static void copy_one(const struct field *f, void *to, const void *from)
{
	if (field_storage(f) == STORED_BYTES) {
		const struct strings *source = CONST_MEMBER(struct strings, from, f);
		char *data = mem_new(source->len + 1);
		if (source->len)
			memcpy(data, source->data, source->len);
		*MEMBER(struct strings, to, f) = (struct strings){data, source->len};
	} else if (is_owned(f)) {
		char *copy = mem_copy_text(field_text(f, from));
		*MEMBER(const char *, to, f) = copy;
	} else if (f->size) {
		memcpy(MEMBER(char, to, f), CONST_MEMBER(char, from, f), f->size);
	}
}

static void free_one(const struct field *f, void *record)
{
	if (field_storage(f) == STORED_BYTES)
		free(MEMBER(struct strings, record, f)->data);
	else if (is_owned(f))
		free((char *)*MEMBER(const char *, record, f));
}

void fields_copy(
	const struct field_table *t, unsigned flags, size_t end, void *to, const void *from)
{
	for (size_t i = 0; i < t->count; i++)
		if ((t->fields[i].flags & flags) == flags && t->fields[i].offset < end)
			copy_one(&t->fields[i], to, from);
}

void fields_change(
	const struct field_table *t, const struct field_set *given, void *to, const void *from)
{
	for (size_t i = 0; i < t->count; i++) {
		if (!field_set_has(given, i))
			continue;
		free_one(&t->fields[i], to);
		copy_one(&t->fields[i], to, from);
	}
}

void fields_free(const struct field_table *t, void *record)
{
	for (size_t i = 0; i < t->count; i++)
		free_one(&t->fields[i], record);
}
