/* Filters a diff to changes at or below some paths, as a stream. */
#pragma once

#include "base/tar_push.h"
#include "bunker.h"

struct diff_paths {
	char **paths; /* absolute, without a slash at the end; closed by NULL; none: all is wanted
		       */
};

/* Relative ones begin in `workdir`. Says on stderr what is wrong. */
int cli_diff_paths_init(struct diff_paths *p, char **operands, const char *workdir);
void cli_diff_paths_finish(struct diff_paths *p);
/* stands_for_below: it is a directory that is gone with all that was in it. */
bool cli_diff_paths_match(const struct diff_paths *p, const char *path, bool stands_for_below);

/* A unified diff, section by section. For people nothing that steers a terminal is let through. */
struct diff_text {
	const struct diff_paths *paths;
	bool for_people, colored;
	struct buf line; /* up to its line feed */
	bool wanted;     /* the section */
	bunker_data_fn *write;
	void *arg;
};
int cli_diff_text_take(void *diff_text, const void *data, size_t size);
void cli_diff_text_finish(struct diff_text *t);

/* A tar, member by member. */
struct diff_tar {
	const struct diff_paths *paths;
	struct tar_push tar;
	bool wanted; /* the member */
	bunker_data_fn *write;
	void *arg;
};
int cli_diff_tar_take(void *diff_tar, const void *data, size_t size);
/* Frees it. ok: everything has come; then the archive is closed. */
int cli_diff_tar_finish(struct diff_tar *t, bool ok);
