/*
 * The files of output that is too long for memory: data/front/spool/EXECUTION.STREAM. However many
 * there are, SPOOL_OPEN_MAX of them are open: the one that was used longest ago is closed for the
 * next. A file that is gone when it is opened again, because the tenant's oldest output had to go,
 * is an error to its reader.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/id.h"

#define SPOOL_OPEN_MAX  64
#define SPOOL_NAME_SIZE (ID_SIZE + 2)

struct spool_file;

struct spool {
	const char *dir;
	struct spool_file *open; /* the one used longest ago first */
	unsigned open_count;
	uint64_t unchecked; /* bytes written since the free space was looked at */
	bool is_short;      /* the free space had reached the reserve then */
	int64_t checked_ms;
};

struct spool_file {
	struct spool *spool; /* NULL: nothing of it goes to disk */
	char name[SPOOL_NAME_SIZE];
	int fd; /* -1: not open just now */
	struct spool_file *prev, *next;
};

/* spool may be NULL. */
void spool_file_init(
	struct spool_file *f, struct spool *spool, const char *execution, unsigned stream);
/* Closes it; the file stays. */
void spool_file_finish(struct spool_file *f);
/* Makes it, empty. 0 or -errno, as the following. */
int spool_file_create(struct spool_file *f);
int spool_file_write(struct spool_file *f, const char *data, size_t len, uint64_t offset);
/* Returns how much was read, at least one byte; negative when there is none. */
ssize_t spool_file_read(struct spool_file *f, char *data, size_t len, uint64_t offset);
/* Negative: there is none. */
int64_t spool_file_size(struct spool_file *f);
void spool_file_remove(struct spool_file *f);

/*
 * Whether the file system has more free than its reserve: the smaller of 256 MiB and a twentieth.
 * Looks after every 8 MiB, or a second.
 */
bool spool_has_room(struct spool *s);
/* A tenth of its file system: what all spool files and rows together may take. */
int64_t spool_share(const struct spool *s);
