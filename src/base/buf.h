/*
 * A growable byte buffer. It owns its memory; `data` may be NULL while `len` is 0.
 * Growth that would pass BUF_MAX or that malloc refuses marks the buffer `failed`: later appends do
 * nothing, so that a writer checks once, at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define BUF_MAX ((size_t)1 << 30)

struct buf {
	char *data;
	size_t len;
	size_t cap;
	bool failed;
};

void buf_finish(struct buf *b);
bool buf_reserve(struct buf *b, size_t more);
void buf_append(struct buf *b, const void *data, size_t len);
/* Aborts if it has failed: for content whose size is bounded, where memory alone can be missing. */
void buf_require(const struct buf *b);
void buf_append_str(struct buf *b, const char *s);
void buf_append_char(struct buf *b, char c);
/* For log lines, messages and headers; never for JSON, SQL or shell. */
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Drop the first n bytes. */
void buf_consume(struct buf *b, size_t n);
/* The buffer with its content; *b is left empty. */
struct buf buf_take(struct buf *b);
/* NUL-terminated copy of the content, owned by the caller; the buffer is left empty. NULL when
 * failed. */
char *buf_take_str(struct buf *b);

#define autobuf __attribute__((cleanup(buf_finish))) struct buf
