/* SANDBOX on the command line: an id, a name, or the beginning of an id that only one has. */
#pragma once

#include "base/id.h"
#include "bunker.h"

/* The sandbox's id alone, for those who would take "not found" for something else. */
int cli_target_find(struct bunker *b, const char *target, char id[ID_SIZE], struct bunker_error *e);

typedef int target_fn(struct bunker *b, const char *id, void *arg, struct bunker_error *e);

/*
 * Calls fn with the sandbox's id. What looks like an id is tried as one first, which saves a round
 * trip; only when there is no such sandbox, or it cannot be an id, is it looked up as a name, and
 * then as the beginning of an id.
 */
int cli_target_apply(
	struct bunker *b, const char *target, target_fn *fn, void *arg, struct bunker_error *e);
