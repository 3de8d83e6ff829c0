/* Shared by the parts of `bunker files`. */
#pragma once

#include "cli/job.h"

extern const struct command cmd_files_ls, cmd_files_cat, cmd_files_rm, cmd_files_mkdir,
	cmd_files_stat, cmd_files_find, cmd_files_grep, cmd_files_watch;

/* -u and -w, which all of them have. */
extern const struct option cli_files_options[];

/* Prints a name. Names come from strangers, so control characters are escaped on a terminal. */
void cli_files_print_text(const char *text);
