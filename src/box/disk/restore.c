/*
 * Swapping a sandbox's disk. Its row says "suspended" before its processes are ended: a crash in
 * between leaves it suspended, on the old disk or on the new one, and never on half of either.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "box/disk/disks.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/later.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"
#include "box/sandbox/turn.h"

struct swap {
	struct sandbox *sandbox;
	struct disk_name from;
	bool was_awake;
	struct error failure;
	bool failed;
	sandbox_done_fn *done;
	void *arg;
};

static void swap_end(struct swap *w)
{
	struct sandbox *s = w->sandbox;
	box_answer_later(s->box, w->done, w->arg, w->failed ? &w->failure : NULL);
	free(w);
	sandbox_release(s);
}

static void swap_fail(struct swap *w, const struct error *e)
{
	w->failed = true;
	w->failure = *e;
}

static void awake_stored(void *arg, int error)
{
	struct swap *w = arg;
	struct error e;
	if (error && !w->failed) {
		store_error(&e, error, "the restore could not be stored");
		swap_fail(w, &e);
	}
	swap_end(w);
}

static void swap_booted(void *arg, const struct error *e)
{
	struct swap *w = arg;
	struct sandbox *s = w->sandbox;
	if (e) {
		if (!w->failed)
			swap_fail(w, e);
		swap_end(w);
		return;
	}
	s->failure[0] = '\0';
	sandbox_set_awake(s);
	event_add(s, EVENT_STARTED, CAUSE_REQUEST,
		(struct event_detail[]){{"bootId", s->boot_id}, {NULL, NULL}});
	sandbox_store(s, SANDBOX_IDLE, awake_stored, w);
}

/* After a failed swap the sandbox goes on, too, with its old disk. */
static void restore_go_on(struct swap *w)
{
	if (w->was_awake)
		sandbox_boot(w->sandbox, true, swap_booted, w);
	else
		swap_end(w);
}

/* The next checkpoint is made of what it was restored from. */
static void note_restored(const struct swap *w)
{
	struct sandbox *s = w->sandbox;
	if (w->from.kind == DISK_CHECKPOINT)
		memcpy(s->checkpoint, w->from.id, ID_SIZE);
	else
		s->checkpoint[0] = '\0';
	event_add(s, EVENT_RESTORED, CAUSE_REQUEST,
		(struct event_detail[]){{"from", disk_kind_name((enum disk_kind)w->from.kind)},
			{"id", w->from.id}, {NULL, NULL}});
	sandbox_store(s, SANDBOX_SUSPENDED, NULL, NULL);
}

static void disk_swapped(void *arg, const struct keeper_reply *reply)
{
	struct swap *w = arg;
	struct error e;
	if (reply->error) {
		disks_error(&e, reply->error, "the disk could not be restored");
		swap_fail(w, &e);
	} else {
		note_restored(w);
	}
	restore_go_on(w);
}

static void swap_halted(void *arg, const struct error *e)
{
	struct swap *w = arg;
	struct sandbox *s = w->sandbox;
	struct disk_name disk = disk_of(s);
	(void)e;
	if (s->status == SANDBOX_STOPPING)
		sandbox_set_status(s, SANDBOX_SUSPENDED);
	if (w->failed)
		restore_go_on(w);
	else
		s->box->driver->disk_restore(s->box->driver, &disk, &w->from, disk_swapped, w);
}

/* When it could not be stored its processes are cut off already: they end, and the disk stays. */
static void suspended_stored(void *arg, int error)
{
	struct swap *w = arg;
	struct error e;
	if (error) {
		store_error(&e, error, "the restore could not be stored");
		swap_fail(w, &e);
	}
	sandbox_halt(w->sandbox, swap_halted, w);
}

static void swap_has_turn(void *arg, struct sandbox *s, const struct error *e)
{
	struct swap *w = arg;
	if (e) {
		box_answer_later(s->box, w->done, w->arg, e);
		free(w);
		return;
	}
	w->was_awake = sandbox_is_awake(s) || s->status == SANDBOX_FAILED;
	if (s->status == SANDBOX_SUSPENDED) {
		swap_halted(w, NULL);
		return;
	}
	s->pause.pausing = true;
	if (s->paused_ms == 0)
		s->paused_ms = lease_now_ms(s->box);
	sandbox_set_status(s, SANDBOX_STOPPING);
	sandbox_disconnect(s);
	sandbox_store(s, SANDBOX_SUSPENDED, suspended_stored, w);
}

void sandbox_swap_disk(
	struct sandbox *s, const struct disk_name *from, sandbox_done_fn *done, void *arg)
{
	struct swap *w = mem_new(sizeof *w);
	*w = (struct swap){.sandbox = s, .from = *from, .done = done, .arg = arg};
	sandbox_take_turn(s, swap_has_turn, w);
}

void sandbox_discard(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	struct disk_name from = disk_to_begin_with(s);
	sandbox_swap_disk(s, &from, done, arg);
}
