/* One operation of the life cycle at a time. */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct sandbox;

/* With `e` the turn was refused: nothing may be done or released. */
typedef void sandbox_turn_fn(void *arg, struct sandbox *s, const struct error *e);
/* Calls `granted` when the turn comes, perhaps at once. */
void sandbox_take_turn(struct sandbox *s, sandbox_turn_fn *granted, void *arg);
/*
 * Withdraws the request for a turn that was made with `arg`; its callback is told a refusal. False:
 * none waits.
 */
bool sandbox_withdraw_turn(struct sandbox *s, const void *arg);
/* Ends a turn: grants the next one, or ends the sandbox if it was deleted meanwhile. */
void sandbox_release(struct sandbox *s);
/* Refuses all that wait, because the sandbox is being deleted. */
void sandbox_refuse_turns(struct sandbox *s);
