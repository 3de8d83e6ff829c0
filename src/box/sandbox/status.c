/*
 * The states of a sandbox and the allowed transitions. Every change of status passes here: one that
 * the table does not allow is a bug of the server, is logged, and does not happen.
 */
#include "box/sandbox/status.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"

#define MOVE(to) (1u << SANDBOX_##to)

static const unsigned allowed_changes[SANDBOX_STATUS_COUNT] = {
	[SANDBOX_CREATING] = MOVE(IDLE) | MOVE(RUNNING) | MOVE(STOPPING) | MOVE(FAILED),
	[SANDBOX_IDLE] = MOVE(RUNNING) | MOVE(PAUSED) | MOVE(STOPPING) | MOVE(FAILED),
	[SANDBOX_RUNNING] = MOVE(IDLE) | MOVE(PAUSED) | MOVE(STOPPING) | MOVE(FAILED),
	[SANDBOX_PAUSED] =
		MOVE(IDLE) | MOVE(RUNNING) | MOVE(STOPPING) | MOVE(SUSPENDED) | MOVE(FAILED),
	[SANDBOX_STOPPING] = MOVE(SUSPENDED) | MOVE(TERMINATED) | MOVE(DELETED),
	[SANDBOX_SUSPENDED] = MOVE(IDLE) | MOVE(RUNNING) | MOVE(STOPPING),
	[SANDBOX_TERMINATED] = 0,
	[SANDBOX_FAILED] = MOVE(IDLE) | MOVE(RUNNING) | MOVE(STOPPING),
	[SANDBOX_DELETED] = 0,
};

void sandbox_set_status(struct sandbox *s, enum sandbox_status status)
{
	if (!(allowed_changes[s->status] & (1u << status))) {
		log_error("a status cannot change like this", "sandbox", s->id, "from",
			sandbox_status_names[s->status], "to", sandbox_status_names[status]);
		return;
	}
	s->status = status;
	struct sandbox_watcher *w, *next;
	DL_FOREACH_SAFE (s->box->sandboxes.watchers, w, next)
		if (strcmp(w->id, s->id) == 0)
			w->changed(w->arg, s);
}

void sandbox_watch(struct box *b, struct sandbox_watcher *w)
{
	DL_APPEND(b->sandboxes.watchers, w);
}

void sandbox_unwatch(struct box *b, struct sandbox_watcher *w)
{
	DL_DELETE(b->sandboxes.watchers, w);
}

void sandbox_set_awake(struct sandbox *s)
{
	enum sandbox_status status = s->running > 0 ? SANDBOX_RUNNING : SANDBOX_IDLE;
	if (s->status != status)
		sandbox_set_status(s, status);
	s->pause.pausing = false;
	s->paused_ms = 0;
	s->lease.awake_us = clock_monotonic_us();
	s->last_active_ms = lease_now_ms(s->box);
	sandbox_clock_changed(s);
}
