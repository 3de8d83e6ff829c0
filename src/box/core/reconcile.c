/*
 * The start: three accounts are brought together. What the store says should exist, what the warden
 * finds in the kernel and on disk, and which inits answer.
 *
 *     the row says    the kernel has    then
 *     awake           its processes     it goes on where it was; thawed, if it stands
 *     awake           nothing           failed: its files are kept, it can be booted again
 *     paused          its processes     it stays paused; frozen again, if it does not stand
 *     paused          nothing           suspended, after a reboot: its files are kept
 *     suspended       its processes     a pause was cut short: they are ended
 *     failed          its processes     they are ended
 *     nothing         anything          destroyed: it was never acknowledged, or was deleted
 */
#include "box/core/reconcile.h"

#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "box/code/code_core.h"
#include "box/core/pool.h"
#include "box/disk/disks.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/ending.h"
#include "box/sandbox/failure.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"
#include "box/sandbox/turn.h"
#include "box/template/catalogue.h"

static void check_ready(struct box *b)
{
	if (b->listing || b->listing_disks || b->reconciling > 0 || !b->ready)
		return;
	void (*ready)(void *arg) = b->ready;
	struct sandbox *s;
	b->ready = NULL;
	execution_settle_recorded(b);
	DL_FOREACH (b->order, s)
		sandbox_clock_changed(s);
	pool_refill(b);
	ready(b->ready_arg);
}

/* The row of one that is paused says so; otherwise the status is found out anew. */
static void reconcile_add_row(void *arg, const void *found)
{
	const struct sandbox_record *row = found;
	if (!id_is_valid(row->id))
		return;
	struct sandbox *s = sandbox_from_row(arg, row);
	s->turn.taken = true; /* until it is reconciled */
	sandbox_add(s);
	bool idle = s->status == SANDBOX_SUSPENDED || s->status == SANDBOX_FAILED;
	tenant_force_charge(s, idle ? CHARGE_DISK : CHARGE_ALL);
}

int reconcile_load(struct box *b)
{
	b->listing = b->listing_disks = true;
	if (store_each_sandbox(b->store, reconcile_add_row, b) < 0 || disks_load(b) < 0 ||
		execution_load_recorded(b) < 0)
		return -1;
	return code_load(b);
}

static void reconcile_reconciled(struct sandbox *s)
{
	struct box *b = s->box;
	b->reconciling--;
	usage_begin(s);
	if (s->ephemeral && !execution_first(s))
		sandbox_terminate(s, CAUSE_COMPLETED);
	sandbox_release(s);
	check_ready(b);
}

static void reconcile_change_stored(void *arg, int error)
{
	(void)error; /* it is in the log, and the next start comes to the same */
	reconcile_reconciled(arg);
}

/* ---- meant to be awake ---- */

static void reconcile_lose(struct sandbox *s)
{
	sandbox_fail(s, "it did not survive: its init is gone");
	reconcile_reconciled(s);
}

static void reconcile_reconnected(void *arg, struct sandbox *s, int error)
{
	(void)arg;
	if (error) {
		reconcile_lose(s);
		return;
	}
	/* A pause that was cut short may have told init that deadlines stand. */
	frame_append(init_link_buffer(s->init.link), FRAME_RESUME, 0, 0, 0, NULL, 0);
	init_link_flush(s->init.link);
	sandbox_set_awake(s);
	sandbox_note_oom(s);
	reconcile_reconciled(s);
}

static void reconcile_thawed(void *arg, const struct error *e)
{
	struct sandbox *s = arg;
	if (e)
		reconcile_lose(s);
	else
		sandbox_connect(s, reconcile_reconnected, NULL);
}

/* ---- meant to stand, or to be gone ---- */

static void frozen(void *arg, const struct error *e)
{
	struct sandbox *s = arg;
	if (e)
		log_error("a paused sandbox could not be frozen again", "sandbox", s->id, "error",
			e->message);
	reconcile_reconciled(s);
}

static void reconcile_halted(void *arg, const struct error *e)
{
	(void)e;
	reconcile_reconciled(arg);
}

/* With its executions, so that their end is recorded. */
static void halt_connected(void *arg, struct sandbox *s, int error)
{
	(void)arg;
	(void)error;
	sandbox_disconnect(s);
	sandbox_halt(s, reconcile_halted, s);
}

static void halt_thawed(void *arg, const struct error *e)
{
	struct sandbox *s = arg;
	if (e)
		halt_connected(NULL, s, -1);
	else
		sandbox_connect(s, halt_connected, NULL);
}

/* ---- each of them ---- */

static void reconcile_reconcile(struct sandbox *s)
{
	bool lives = s->found & WARDEN_FOUND_PROCESSES;
	bool stands = s->found & WARDEN_FOUND_FROZEN;
	s->box->reconciling++;
	if (lives && (s->status == SANDBOX_SUSPENDED || s->status == SANDBOX_FAILED)) {
		sandbox_thaw(s, halt_thawed, s);
	} else if (s->status == SANDBOX_SUSPENDED || s->status == SANDBOX_FAILED) {
		reconcile_reconciled(s);
	} else if (s->status == SANDBOX_PAUSED && lives) {
		s->pause.frozen = stands;
		s->init.unheard = true;
		if (stands)
			reconcile_reconciled(s);
		else
			sandbox_freeze(s, frozen, s);
	} else if (s->status == SANDBOX_PAUSED) {
		log_info(
			"a paused sandbox has lost its memory; its disk is kept", "sandbox", s->id);
		sandbox_set_status(s, SANDBOX_SUSPENDED);
		tenant_force_charge(s, CHARGE_DISK);
		event_record(s, EVENT_SUSPENDED, CAUSE_CRASH, NULL);
		sandbox_store(s, SANDBOX_SUSPENDED, reconcile_change_stored, s);
	} else if (lives) {
		sandbox_thaw(s, reconcile_thawed, s);
	} else {
		reconcile_lose(s);
	}
}

static void orphan_destroyed(void *arg, const struct warden_reply *reply)
{
	(void)arg;
	if (reply->error)
		log_error("cannot destroy what is in no store", "sandbox", reply->id, "error",
			strerror(reply->error));
}

static void reconcile_list_ended(struct box *b)
{
	struct sandbox *s, *next;
	b->listing = false;
	DL_FOREACH_SAFE (b->order, s, next)
		if (s->found == 0)
			reconcile_reconcile(s);
	check_ready(b);
}

static void list_answered(void *arg, const struct warden_reply *reply)
{
	struct box *b = arg;
	struct sandbox *s = NULL;
	if (reply->error || !reply->id[0]) {
		reconcile_list_ended(b);
		return;
	}
	b->driver->next(b->driver, reply->id, list_answered, b);
	HASH_FIND(by_id, b->sandboxes, reply->id, ID_LEN, s);
	if (!s) {
		b->driver->destroy(b->driver, reply->id, orphan_destroyed, b);
	} else if (reply->flags) {
		s->found = reply->flags;
		reconcile_reconcile(s);
	}
}

static void hello_answered(void *arg, const struct warden_reply *reply)
{
	struct box *b = arg;
	b->layers = reply->flags;
	b->driver->next(b->driver, "", list_answered, b);
}

static void disks_reconciled(struct box *b)
{
	b->listing_disks = false;
	check_ready(b);
}

static void keeper_greeted(void *arg, const struct keeper_reply *reply)
{
	struct box *b = arg;
	b->pool_state = *reply;
	layers_reconcile(b->catalogue);
	disks_reconcile(b, disks_reconciled);
	b->driver->hello(b->driver, hello_answered, b);
}

/* The keeper first: what an earlier front asked of it has happened by then, and can be found. */
void reconcile_start(struct box *b)
{
	b->driver->disk_hello(b->driver, keeper_greeted, b);
}
