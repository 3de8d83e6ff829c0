/* Shared by the commands about disks. */
#pragma once

#include "cli/job.h"

extern const struct command cmd_checkpoint_create, cmd_checkpoint_ls, cmd_checkpoint_restore,
	cmd_checkpoint_rm;
extern const struct command cmd_snapshot_create, cmd_snapshot_ls, cmd_snapshot_info,
	cmd_snapshot_tag, cmd_snapshot_rm, cmd_snapshot_export, cmd_snapshot_import;
extern const struct command cmd_volume_create, cmd_volume_ls, cmd_volume_info, cmd_volume_rm;

/* ---- cmd_diff.c ---- */

struct diff_counts {
	uint64_t added, changed, deleted;
	bool truncated;
};

/* Compared with a checkpoint or, with NULL, with what the sandbox began with. */
int cli_diff_count(
	struct job *j, const char *checkpoint, struct diff_counts *ret, struct bunker_error *e);

#define DIFF_COUNTS_TEXT 96
/* "1 added, 2 changed, 3 deleted" */
void cli_diff_format_counts(const struct diff_counts *c, char out[DIFF_COUNTS_TEXT]);

/* ---- cmd_snapshot.c ---- */

/* "NAME[:TAG]" apart, in argv itself: the tag, or NULL. */
char *cli_snapshot_split_tag(char *ref);
/* Its id alone, or JSON; frees it. */
void cli_snapshot_print_made(const struct job *j, struct bunker_snapshot *s);
