/* The text of a Dockerfile: lines put together, words, lists, variables. */
#pragma once

#include <stdarg.h>

#include "base/buf.h"
#include "image/dockerfile.h"

struct dockerfile_line {
	int number;
	const char *name; /* in capitals */
	const char *rest; /* without spaces at its ends */
};

/* Names with their values. What it does not have is looked for in the one behind it. */
struct dockerfile_scope {
	struct scratch *memory;
	const struct dockerfile_scope *behind; /* NULL: none */
	const char **entries;                  /* NAME=VALUE */
	size_t count, capacity;
};

int dockerfile_fail(struct dockerfile_error *e, int line, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
char *dockerfile_copy(struct scratch *memory, const char *text, size_t len);

/* *count instructions, and the escape character. */
int dockerfile_split(const char *text, size_t len, struct scratch *memory,
	struct dockerfile_line **ret, size_t *count, char *escape, struct dockerfile_error *e);

void dockerfile_set(
	struct dockerfile_scope *s, const char *name, size_t name_len, const char *value);
const char *dockerfile_get(const struct dockerfile_scope *s, const char *name, size_t name_len);
/* Without the one behind it. */
bool dockerfile_has(const struct dockerfile_scope *s, const char *name, size_t name_len);

/* The words of a text, with quotes removed and variables replaced; NULL-terminated. */
int dockerfile_words(const struct dockerfile_line *line, const char *text,
	const struct dockerfile_scope *scope, char escape, const char *const **ret,
	struct dockerfile_error *e);
/* Expands the whole text as one word. */
int dockerfile_expand(const struct dockerfile_line *line, const char *text,
	const struct dockerfile_scope *scope, char escape, const char **ret,
	struct dockerfile_error *e);
/* ["a", "b"], NULL-terminated; NULL when the text is not such a list. */
const char *const *dockerfile_list(const char *text, struct scratch *memory);
