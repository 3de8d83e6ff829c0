#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"

void buf_finish(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}

bool buf_reserve(struct buf *b, size_t more)
{
	if (b->failed)
		return false;
	if (more <= b->cap - b->len)
		return true;
	if (more > BUF_MAX - b->len) {
		b->failed = true;
		return false;
	}
	size_t cap = b->cap ? b->cap : 64;
	while (cap < b->len + more)
		cap *= 2;
	char *data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void buf_append(struct buf *b, const void *data, size_t len)
{
	if (len == 0 || !buf_reserve(b, len))
		return;
	memcpy(b->data + b->len, data, len);
	b->len += len;
}

void buf_require(const struct buf *b)
{
	if (b->failed)
		mem_exhausted(b->len);
}

void buf_append_str(struct buf *b, const char *s)
{
	buf_append(b, s, strlen(s));
}

void buf_append_char(struct buf *b, char c)
{
	buf_append(b, &c, 1);
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args, again;
	va_start(args, format);
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (len >= 0 && buf_reserve(b, (size_t)len + 1)) {
		vsnprintf(b->data + b->len, (size_t)len + 1, format, again);
		b->len += (size_t)len;
	}
	va_end(again);
}

void buf_consume(struct buf *b, size_t n)
{
	b->len -= n;
	if (b->len > 0 && n > 0)
		memmove(b->data, b->data + n, b->len);
}

struct buf buf_take(struct buf *b)
{
	struct buf taken = *b;
	*b = (struct buf){0};
	return taken;
}

char *buf_take_str(struct buf *b)
{
	buf_append_char(b, '\0');
	if (b->failed) {
		buf_finish(b);
		return NULL;
	}
	char *s = b->data;
	*b = (struct buf){0};
	return s;
}
