/*
 * A file of here that is sent or received, with a progress bar. "-" is stdin or stdout. What is
 * received has its name only when it is complete: until then it is a hidden file beside it.
 */
#pragma once

#include "base/buf.h"
#include "bunker.h"
#include "cli/progress.h"

struct transfer {
	const char *path; /* "-": stdin or stdout */
	int fd;
	char *temporary; /* NULL: none */
	struct progress progress;
};

/* Both say on stderr what is wrong. */
int cli_transfer_receive(struct transfer *t, const char *path, bool quiet);
int cli_transfer_send(struct transfer *t, const char *path, bool quiet);

/* As libbunker wants them, with a struct transfer. */
int cli_transfer_write(void *transfer, const void *data, size_t size);
ptrdiff_t cli_transfer_read(void *transfer, char *data, size_t size);

/*
 * The end of it. r: what the call answered. When it was stopped by us that has been said, or is
 * said now: JOB_SAID.
 */
int cli_transfer_end(struct transfer *t, int r, const struct bunker_error *e);
