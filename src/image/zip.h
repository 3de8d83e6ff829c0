/*
 * A tar archive as a zip archive, while it flows: nothing of its content is kept. Directories,
 * files and links are taken over with their modes and times; what zip has no form for is left out.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "base/error.h"

struct zip_writer;

struct zip_writer *zip_writer_new(void);
void zip_writer_free(struct zip_writer *z);
/*
 * Takes bytes of the tar archive from *data, which moves, and appends what they become: about as
 * much as `room`. Called until *len is 0 and nothing was appended.
 */
int zip_writer_step(struct zip_writer *z, const char **data, size_t *len, size_t room,
	struct buf *out, struct error *e);
/*
 * Appends as much of the directory as there is room for, after the last byte. Returns 1 when it is
 * complete.
 */
int zip_writer_finish(struct zip_writer *z, size_t room, struct buf *out, struct error *e);
