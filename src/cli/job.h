/* The frame of most commands: find the server and the sandbox, report errors. */
#pragma once

#include "base/id.h"
#include "cli/commands.h"

struct job {
	struct arguments *args;
	struct bunker *bunker;
	char sandbox[ID_SIZE]; /* of the first operand, where that is a sandbox */
	char **rest;           /* the operands behind it, closed by NULL */
};

/* For work that has said itself what went wrong. */
#define JOB_SAID (-2)
/* The same, and it was the command line. */
#define JOB_MISUSED (-3)

/* The work of a command that has some; the exit status. */
int cli_job_run(const struct command *command, struct arguments *args);

/* Prints JSON if that was asked for; false: it was not. */
bool cli_job_print_json(const struct job *j, const struct bunker_json *json);
