/* Pausing and resuming, and waking for a call. */
#pragma once

#include "box/sandbox/event.h"
#include "box/sandbox/part.h"
#include "box/sandbox/sandbox.h"

void sandbox_pause_because(struct sandbox *s, bool keep_memory, enum event_cause cause,
	sandbox_done_fn *done, void *arg);

/*
 * Call it before sending to its init. Returns 0 if it is awake or is being woken for this call,
 * which then waits in the connection's buffer. Fails if it is paused and does not wake by itself,
 * or cannot wake any more.
 */
int sandbox_wake(struct sandbox *s, struct error *e);

extern const struct sandbox_part pause_part;
