/* What run and exec share: the command's input, its output and how its end becomes our status. */
#pragma once

#include "cli/arguments.h"

/* What came of the call, for cli_execution_finish. */
struct execution {
	int write_error; /* the errno that ended the output; 0: none */
};

/* Fills args->exec from the operands from `first` on. Returns 0 or the exit status. */
int cli_execution_prepare(struct arguments *args, int first, struct execution *x);
/* After a call that answered r: prints what is left to print, returns the exit status. */
int cli_execution_finish(const struct arguments *args, const struct execution *x, int r,
	struct bunker_result *result, const struct bunker_error *e);
