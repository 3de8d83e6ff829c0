#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

void mem_exhausted(size_t size)
{
	log_error("out of memory", "bytes", log_num((int64_t)size));
	abort();
}

static void *mem_check(void *p, size_t size)
{
	if (!p && size)
		mem_exhausted(size);
	return p;
}

void *mem_resize(void *p, size_t count, size_t size)
{
	if (count == 0) {
		free(p);
		return NULL;
	}
	return mem_check(reallocarray(p, count, size), size);
}

void *mem_copy(const void *data, size_t len)
{
	void *copy = mem_new(len + 1);
	if (len)
		memcpy(copy, data, len);
	return copy;
}

char *mem_copy_text(const char *text)
{
	return text ? mem_copy(text, strlen(text) + 1) : NULL;
}

char *mem_copy_text_n(const char *text, size_t len)
{
	size_t have = strnlen(text, len);
	char *copy = mem_new(have + 1);
	memcpy(copy, text, have);
	return copy;
}
