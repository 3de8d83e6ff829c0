/* One operation of the life cycle at a time. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct sandbox;

/* With `e` the turn was refused: nothing may be done or released. */
typedef void sandbox_turn_fn(void *arg, struct sandbox *s, const struct error *e);
/* Calls `granted` when the turn comes, perhaps at once. */
void sandbox_take_turn(struct sandbox *s, sandbox_turn_fn *granted, void *arg);
/* Takes a turn for a caller that may withdraw; with sandbox_take_turn `arg` is the caller. */
void sandbox_take_turn_for(
	struct sandbox *s, const void *caller, sandbox_turn_fn *granted, void *arg);
/*
 * Withdraws the caller's request for a turn; `granted` is told a refusal. Returns false if none
 * waits: it was not made, or the turn has come.
 */
bool sandbox_withdraw_turn(struct sandbox *s, const void *caller);
/* Ends a turn: grants the next one, or ends the sandbox if it was deleted meanwhile. */
void sandbox_release(struct sandbox *s);
/* Refuses all that wait, because the sandbox is being deleted. */
void sandbox_refuse_turns(struct sandbox *s);
