/*
 * Memory that is always there. Where the machine has none left the process says so and aborts: a
 * front that dies is restarted and finds every sandbox again, while an error path that no test can
 * reach is worth nothing. Sizes that a client decides are limited before they come here.
 */
#pragma once

#include <stddef.h>
#include <stdlib.h>

_Noreturn void mem_exhausted(size_t size);

/* Returns zeroed memory, never NULL; free() it. Inline, so that analyzers know it for calloc's. */
static inline void *mem_new_array(size_t count, size_t size)
{
	void *p = calloc(count, size);
	if (!p)
		mem_exhausted(size);
	return p;
}

static inline void *mem_new(size_t size)
{
	return mem_new_array(1, size);
}

/* Resizes an array to `count` elements. New ones are not zeroed. Frees and returns NULL if count is
 * 0. */
void *mem_resize(void *p, size_t count, size_t size);
void *mem_copy(const void *data, size_t len);
/* Returns NULL for NULL. */
char *mem_copy_text(const char *text);
/* Copies at most len characters, and adds a NUL. */
char *mem_copy_text_n(const char *text, size_t len);
