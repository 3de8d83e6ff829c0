/*
 * What a template starts in its sandboxes, and the wait until it is ready: the start command runs
 * in the background, the ready command is tried again and again until it succeeds.
 */
#pragma once

#include "box/sandbox/object.h"
#include "box/template/settings.h"

#define START_READY_TIMEOUT_MS 60000

struct starting;

/*
 * `done` comes once, never before the call has returned: with NULL when it is ready, or when there
 * is nothing to wait for. A trial's command ends then, and nobody else sees it. NULL with *e when
 * it cannot be started.
 */
struct starting *start_begin(struct sandbox *s, const struct settings *settings, bool trial,
	sandbox_done_fn *done, void *arg, struct error *e);
/* `done` will not be called. */
void start_cancel(struct starting *st);
