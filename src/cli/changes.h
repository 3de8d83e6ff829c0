/* pause, resume and extend: one call for each sandbox, and its new state printed. */
#pragma once

#include "cli/arguments.h"

typedef int change_fn(struct bunker *b, const char *id, const struct arguments *args,
	struct bunker_sandbox *ret, struct bunker_error *e);

/* For the first `count` operands; one that fails does not spare the others. The exit status. */
int cli_change_sandboxes(const struct arguments *args, int count, change_fn *move);
