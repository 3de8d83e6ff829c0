/* The start: what the store says, the warden finds and inits answer is brought together. */
#pragma once

#include "box/sandbox/sandbox.h"

int reconcile_load(struct box *b);
void reconcile_start(struct box *b);
/*
 * Calls back when the init of a sandbox that is being reconciled has answered, or was given up.
 * Returns false, and does not, if there is nothing to wait for.
 */
bool reconcile_await(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* Nobody waits any longer for what is not found yet. */
void reconcile_stop(struct box *b);
