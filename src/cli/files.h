/* What the parts of `bunker files` share. */
#pragma once

#include "base/id.h"
#include "cli/commands.h"

extern const struct command cmd_files_ls, cmd_files_cat, cmd_files_rm, cmd_files_mkdir,
	cmd_files_stat, cmd_files_find, cmd_files_grep, cmd_files_watch;

/* A part at work: its sandbox has been found. */
struct files_job {
	struct arguments *args;
	struct bunker *bunker;
	char sandbox[ID_SIZE];
	char **paths; /* the operands behind SANDBOX, closed by NULL */
};

/* Finds the sandbox, has `work` do the rest, says what became of it. Returns the exit status. */
typedef int files_work_fn(struct files_job *j, struct bunker_error *e);
int cli_files_run(struct arguments *args, files_work_fn *work);

/* -u and -w, which all of them have. */
extern const struct option cli_files_options[];

/* Names are anybody's: what could steer a terminal is not let through to one. */
void cli_files_print_text(const char *text);
