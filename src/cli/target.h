/* SANDBOX on the command line: an id, or a name. */
#pragma once

#include "bunker.h"

typedef int target_fn(struct bunker *b, const char *id, void *arg, struct bunker_error *e);

/*
 * Calls fn with the sandbox's id. What looks like an id is tried as one first, which saves a round
 * trip; only when there is no such sandbox, or it cannot be an id, is it looked up as a name.
 */
int cli_target_apply(
	struct bunker *b, const char *target, target_fn *fn, void *arg, struct bunker_error *e);
