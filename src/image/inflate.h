/*
 * Archives as they come: plain, or compressed by gzip or zstd, told apart by their first bytes.
 * What comes out is handed over in bounded pieces, however much it is: what is too much is for the
 * reader to say.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

struct inflate;

struct inflate *inflate_new(void);
void inflate_free(struct inflate *i);
/*
 * Takes bytes from *data, which moves, and appends at most `room` of what they stand for. Called
 * until *len is 0 and nothing was appended.
 */
int inflate_step(struct inflate *i, const char **data, size_t *len, size_t room, struct buf *out,
	struct error *e);
/* Whether its first bytes were those of gzip; false before they have come. */
bool inflate_is_gzip(const struct inflate *i);
/* Checks, after the last byte, that the stream was complete. */
int inflate_end(const struct inflate *i, struct error *e);
