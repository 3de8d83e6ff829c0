/*
 * The startup of a template in a new sandbox: the start command runs in the background, the ready
 * command is tried again and again until it succeeds.
 */
#pragma once

#include "box/sandbox/object.h"
#include "box/template/settings.h"

#define STARTUP_READY_TIMEOUT_MS (10 * 60 * 1000)

struct startup;

/*
 * `done` comes once, never before the call has returned: with NULL when it is ready, or when there
 * is nothing to wait for. A trial's command ends then, and is listed nowhere. Returns NULL with *e
 * if it cannot be started.
 */
struct startup *startup_begin(struct sandbox *s, const struct settings *settings, bool trial,
	sandbox_done_fn *done, void *arg, struct error *e);
/* `done` will not be called. */
void startup_cancel(struct startup *st);
