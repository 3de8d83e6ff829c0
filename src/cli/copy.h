/*
 * The two ends of a copy on this side: files packed into an archive as it is sent, and an archive
 * unpacked as it comes. What comes is hostile: nothing is written outside of the directory that was
 * named, whatever links it brings along or finds there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/progress.h"

struct packing;

/*
 * A file, under this name, or, with name NULL, all that is in a directory. Says on stderr what is
 * wrong. *size is about as many bytes as there will be.
 */
struct packing *cli_pack_open(
	const char *path, const char *name, struct progress *progress, uint64_t *size);
/* As libbunker asks for it: takes a struct packing. */
ptrdiff_t cli_pack_read(void *packing, char *data, size_t size);
void cli_pack_close(struct packing *p);

/* What came is not complete, or no archive; nobody was told yet. */
#define UNPACK_INCOMPLETE (-2)

/*
 * Unpacks what comes from fd below the directory; with a name, the one member gets that. Says on
 * stderr what is wrong; 0, -1 or UNPACK_INCOMPLETE.
 */
int cli_unpack(int fd, const char *directory, const char *name, struct progress *progress);
