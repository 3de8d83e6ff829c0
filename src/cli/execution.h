/* Shared by run and exec: the command's input, its output and the exit status. */
#pragma once

#include "cli/arguments.h"
#include "cli/waiting.h"

/* The result of the call, for cli_execution_finish. */
struct execution {
	int write_error;        /* the errno that ended the output; 0: none */
	struct waiting waiting; /* of exec; of run, whose sandbox ends with us, nothing */
};

/* The operands from `first` on, or --shell. Returns 0 or the exit status. */
int cli_execution_take_command(struct arguments *args, int first);
/* Fills args->exec from the operands from `first` on. Returns 0 or the exit status. */
int cli_execution_prepare(struct arguments *args, int first, struct execution *x);
/* After a call that answered r: prints what is left to print, returns the exit status. */
int cli_execution_finish(const struct arguments *args, const struct execution *x, int r,
	struct bunker_result *result, const struct bunker_error *e);
/* The exit status that a result stands for; says on stderr what the status cannot. */
int cli_execution_status(const struct bunker_result *result);
/* Bytes of the process to our stdout and stderr; arg is a struct execution. */
bunker_output_fn cli_execution_pass_output;
