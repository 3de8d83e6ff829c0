/* A sandbox whose init is gone, or makes no sense: its processes are lost, its disk is not. */
#include "box/sandbox/failure.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/later.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"

static void failure_stored(void *arg, int error)
{
	(void)arg;
	if (error)
		log_error("a sandbox's failure could not be stored");
}

static void failure_killed(void *arg, const struct warden_reply *reply)
{
	(void)reply; /* a resume, a delete and the next start try again */
	box_check_closed(arg);
}

/*
 * Ends processes of a sandbox whose init talks nonsense: they still run, and can no longer be
 * controlled.
 */
static void failure_end_processes(struct sandbox *s)
{
	s->box->driver->kill(s->box->driver, s->id, failure_killed, s->box);
}

/* Counts the time of a failed sandbox as paused. */
static void failure_begin_rest(struct sandbox *s)
{
	s->last_active_ms = lease_now_ms(s->box);
	if (s->paused_ms == 0)
		s->paused_ms = s->last_active_ms;
	sandbox_clock_changed(s);
}

void sandbox_fail(struct sandbox *s, const char *reason)
{
	if (s->init.connected) {
		sandbox_not_connected(s, -EPROTO); /* the code that connects handles the failure */
		return;
	}
	init_link_close(s->init.link);
	s->init.link = NULL;
	/* The builder's work ends, and its owner is told. */
	if (!s->listed && s->tenant)
		sandbox_parts_ended(s, true, NULL);
	if (!s->listed || s->ending.doomed || s->status == SANDBOX_STOPPING ||
		s->status == SANDBOX_FAILED)
		return;
	log_warn("a sandbox failed", "sandbox", s->id, "reason", reason);
	snprintf(s->failure, sizeof s->failure, "%s", reason);
	bool known = s->status != SANDBOX_CREATING;
	sandbox_set_status(s, SANDBOX_FAILED);
	tenant_force_charge(s, CHARGE_DISK);
	failure_end_processes(s);
	failure_begin_rest(s);
	struct error e;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox has failed: %s", reason);
	sandbox_parts_ended(s, true, &e);
	if (!known)
		return;
	event_add(s, EVENT_FAILED, CAUSE_CRASH,
		(struct event_detail[]){{"reason", reason}, {NULL, NULL}});
	sandbox_store(s, SANDBOX_FAILED, failure_stored, NULL);
}
