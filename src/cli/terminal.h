/* A process at our terminal: in a sandbox that is there, or in one that is made for it and goes
 * with it. */
#pragma once

#include "cli/arguments.h"

/*
 * target NULL: a sandbox is made by args->create, and destroyed when the process ends, unless there
 * is --keep or the user detaches. Returns the exit status.
 */
int cli_terminal_run(struct arguments *args, struct bunker *b, const char *target,
	const struct bunker_exec_options *command);
