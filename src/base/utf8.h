/* Strict UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The length of the character that s starts with, or 0 when that is not UTF-8. len is not 0. */
size_t utf8_char_len(const char *s, size_t len);
bool utf8_is_valid(const char *text, size_t len);
/* Returns how many bytes at the end begin an incomplete sequence: text must not be cut there. */
size_t utf8_incomplete_tail(const char *data, size_t len);

/* The incomplete character at the end of a piece of text, kept for the next piece. */
struct utf8_rest {
	char bytes[3];
	size_t len;
};
/* Appends `rest` and the piece, except for a character that continues in the next piece. */
void utf8_join(struct utf8_rest *rest, const char *data, size_t len, struct buf *out);
