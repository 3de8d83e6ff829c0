/*
 * The end of a sandbox. Its processes are killed and its row is closed side by side; its disk goes
 * only after both, so that a crash in between loses no file of one that is still meant to exist.
 *
 * When the store refuses, because there is no room, the disk goes first: that may be the room. If
 * it still refuses, the end is told when the processes are dead, nobody finds the sandbox any more,
 * and its row is tried again until it is closed. A crash before that brings back a sandbox that has
 * failed, without its files.
 */
#include "box/sandbox/ending.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "box/sandbox/status.h"
#include "box/sandbox/turn.h"

struct sandbox_waiter {
	struct sandbox_waiter *next;
	void (*done)(void *arg);
	void *arg;
};

static void tell_waiters(struct sandbox_waiter *w)
{
	while (w) {
		struct sandbox_waiter *next = w->next;
		w->done(w->arg);
		free(w);
		w = next;
	}
}

/* Work that is left when the waiters have been told. */
struct remains {
	struct box *box;
	struct usage_state usage;
	bool known;
};

/* Runs in the background: the next start destroys what is left if the front dies. */
static void traces_removed(void *arg, const struct warden_reply *reply)
{
	struct remains *r = arg;
	if (reply->error)
		log_error("cannot remove what a sandbox left", "sandbox", reply->id, "error",
			strerror(reply->error));
	usage_boot_ended(&r->usage, reply->usage.cpu_us);
	if (r->known)
		store_put_usage(r->box->store, reply->id, r->usage.cpu_before_us,
			(int64_t)r->usage.memory_byte_seconds);
	box_check_closed(r->box);
	free(r);
}

static void end_is_told_early(struct sandbox *s)
{
	struct sandbox_waiter *waiters = take_ptr(s->ending.waiters);
	s->ending.told = true;
	tell_waiters(waiters);
}

static void end_if_dead(struct sandbox *s)
{
	struct box *b = s->box;
	struct sandbox_waiter *waiters = s->ending.waiters;
	if (!s->ending.killed)
		return;
	if (!s->ending.row_ended) {
		if (s->ending.row_refused)
			end_is_told_early(s);
		return;
	}
	struct remains *r = mem_new(sizeof *r);
	*r = (struct remains){b, s->usage, s->known};
	sandbox_set_status(
		s, s->ending.cause == CAUSE_REQUEST ? SANDBOX_DELETED : SANDBOX_TERMINATED);
	b->counters.destroyed_total++;
	b->driver->destroy(b->driver, s->id, traces_removed, r);
	sandbox_parts_destroyed(s);
	sandbox_free(s);
	tell_waiters(waiters);
	b->hooks->sandbox_gone(b);
}

static void ending_kill_answered(void *arg, const struct warden_reply *reply)
{
	struct sandbox *s = arg;
	if (reply->error && !s->box->closing) {
		/* Something will not die yet. Nothing is forgotten: we ask until it does. */
		log_error("cannot kill a sandbox yet", "sandbox", s->id, "error",
			strerror(reply->error));
		s->box->driver->kill(s->box->driver, s->id, ending_kill_answered, s);
		return;
	}
	usage_boot_ends(&s->usage, reply->usage.memory);
	s->ending.killed = true;
	end_if_dead(s);
}

static void end_row(struct sandbox *s);

static void ending_disk_gone(void *arg, const struct warden_reply *reply)
{
	(void)reply;
	end_row(arg);
}

static void row_ended(void *arg, int error)
{
	struct sandbox *s = arg;
	if (error)
		log_error("a sandbox's end could not be stored", "sandbox", s->id);
	if (!error || s->box->closing) {
		s->ending.row_ended = true;
		end_if_dead(s);
	} else if (s->ending.disk_gone) {
		s->ending.row_refused = true; /* until it is tried again */
		end_if_dead(s);
	} else {
		s->ending.disk_gone = true;
		s->box->driver->destroy(s->box->driver, s->id, ending_disk_gone, s);
	}
}

static void end_row(struct sandbox *s)
{
	bool by_request = s->ending.cause == CAUSE_REQUEST;
	s->ending.row_refused = false;
	if (!s->known) {
		s->ending.row_ended = true; /* it never had one */
		end_if_dead(s);
		return;
	}
	s->events -= s->ending.disk_gone; /* a second time it is the same event */
	event_add(s, by_request ? EVENT_DELETED : EVENT_TERMINATED, s->ending.cause, NULL);
	store_end_sandbox(s->box->store, s->id,
		sandbox_status_name(by_request ? SANDBOX_DELETED : SANDBOX_TERMINATED),
		event_cause_name(s->ending.cause), clock_wall_ms(), row_ended, s);
}

void sandbox_retry_ends(struct box *b)
{
	struct sandbox *s, *next;
	DL_FOREACH_SAFE (b->sandboxes.order, s, next)
		if (s->ending.row_refused)
			end_row(s);
}

void sandbox_end_now(struct sandbox *s)
{
	s->turn.taken = true; /* for good */
	if (s->status != SANDBOX_STOPPING)
		sandbox_set_status(s, SANDBOX_STOPPING);
	sandbox_disconnect(s);
	s->box->driver->kill(s->box->driver, s->id, ending_kill_answered, s);
	end_row(s);
}

void sandbox_destroy(struct sandbox *s, void (*done)(void *arg), void *arg)
{
	if (done) {
		struct sandbox_waiter *w = mem_new(sizeof *w);
		*w = (struct sandbox_waiter){s->ending.waiters, done, arg};
		s->ending.waiters = w;
	}
	sandbox_terminate(s, CAUSE_REQUEST);
}

void sandbox_terminate(struct sandbox *s, enum event_cause cause)
{
	if (s->ending.doomed)
		return;
	s->ending.doomed = true;
	s->ending.cause = cause;
	tenant_force_charge(s, CHARGE_NONE);
	sandbox_refuse_turns(s);
	s->box->driver->recall_boot(s->box->driver, s->id);
	if (s->init.reconciling && s->init.connected)
		sandbox_not_connected(s, -ECANCELED); /* its init may never answer */
	/* Otherwise the operation that has the turn ends the sandbox by its release. */
	if (!s->turn.taken && !s->turn.granting)
		sandbox_end_now(s);
}
