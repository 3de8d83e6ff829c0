/* Comparing two views, and what is made of the differences. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "keeper/view.h"
#include "wire/diff.h"

struct diff;

struct change {
	enum diff_kind kind;
	const char *path; /* "/etc/hostname" */
	const char *name; /* its last part */
	/* Either may not exist. */
	const struct view_entry *old, *new;
};

/* Negative ends the walk. */
typedef int diff_change_fn(void *arg, const struct change *c);

struct diff {
	const struct view *old, *new;
	diff_change_fn *change;
	void *arg;
	bool tells_all; /* also what was below a directory that is gone */
	bool truncated;
	char path[PATH_MAX];
};

int diff_walk(struct diff *d);

/* Returns a descriptor of a regular file, or -errno; refuses a file that changed its type. */
int diff_open_file(const struct view_entry *e, const char *name);

/* ---- diff_out.c ---- */

struct diff_out {
	int fd;
	char data[DIFF_BYTES_MAX]; /* DATA that is not sent yet */
	size_t len;
	struct ZSTD_CCtx_s *compressor; /* NULL: bytes are sent as they are */
};

/* From here on bytes are compressed. */
int diff_out_compress(struct diff_out *o);
int diff_out_change(struct diff_out *o, const struct change *c);
int diff_out_bytes(struct diff_out *o, const void *data, size_t len);
int diff_out_end(struct diff_out *o, int error, bool truncated);

/* ---- diff_tar.c ---- */

struct tar_writer;
struct tar_writer *tar_writer_new(struct diff_out *out);
void tar_writer_free(struct tar_writer *t);
int tar_write_change(void *arg, const struct change *c);
int tar_write_end(struct tar_writer *t);

/* ---- diff_text.c ---- */

int text_write_change(void *arg, const struct change *c);

/* ---- lines.c: the shortest way from one list of lines to another ---- */

struct line {
	const char *text;
	size_t len; /* with its line feed, if it has one */
};

/*
 * Marks old lines that stay and new lines that existed. Returns false if the texts are too
 * different for the bounded search.
 */
bool lines_compare(const struct line *old, size_t old_count, bool *old_stays,
	const struct line *new, size_t new_count, bool *new_stays);
