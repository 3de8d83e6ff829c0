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
 *     ended           anything          destroyed: its delete was cut short
 *     no row          anything          its processes are ended, its disk is set aside for a day:
 *                                       it was never acknowledged, or the database is older
 *
 * Before any of that the server has made sure that disks and database belong together
 * (server/owner.c).
 *
 * Requests are served when that is done, or GRACE_MS after it has begun, as soon as the keeper has
 * listed its disks. The warden goes on to list what it had when it was asked first, and a sandbox
 * that it has not come to, or whose init does not answer, is waited for by the calls to it alone
 * (reconcile_await).
 */
#include "box/core/reconcile.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/code/code_core.h"
#include "box/core/pool.h"
#include "box/disk/disks.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/disk_name.h"
#include "box/sandbox/ending.h"
#include "box/sandbox/failure.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/later.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/network.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"
#include "box/sandbox/turn.h"
#include "box/template/catalogue.h"

/* What is found within this time is found before the first request is served. */
#define GRACE_MS 250

/* Waits until one sandbox is reconciled. */
struct start_waiter {
	struct start_waiter *prev, *next;
	char id[ID_SIZE];
	sandbox_done_fn *done;
	void *arg;
};

/* Every init has answered, or was given up. */
static void start_end(struct box *b)
{
	b->start.settled = true;
	b->driver->policies_complete(b->driver);
	kept_sweep(b);
	b->start.found(b->start.arg);
}

static void start_serve(struct box *b)
{
	struct sandbox *s;
	uv_timer_stop(&b->start.grace);
	b->starting = false;
	if (b->start.reconciling > 0)
		log_info("some sandboxes are not found yet, and waited for", "sandboxes",
			log_num((int64_t)b->start.reconciling));
	execution_settle_recorded(b, NULL);
	DL_FOREACH (b->sandboxes.order, s)
		sandbox_clock_changed(s);
	pool_refill(b);
	b->start.ready(b->start.arg);
}

/* What is made once the warden has begun to list is not in its list. */
static bool start_may_serve(const struct box *b)
{
	bool is_late = !uv_is_active((const uv_handle_t *)&b->start.grace);
	return !b->start.listing_disks &&
	       (b->start.reconciling == 0 ? !b->start.listing : is_late && b->start.begun);
}

static void check_ready(struct box *b)
{
	if (b->starting && start_may_serve(b))
		start_serve(b);
	if (!b->starting && !b->start.listing && b->start.reconciling == 0 && !b->start.settled)
		start_end(b);
}

static void start_grace_over(uv_timer_t *timer)
{
	check_ready(timer->data);
}

bool reconcile_await(struct sandbox *s, sandbox_done_fn *done, void *arg)
{
	if (!s->init.reconciling)
		return false;
	struct start_waiter *w = mem_new(sizeof *w);
	memcpy(w->id, s->id, ID_SIZE);
	w->done = done;
	w->arg = arg;
	DL_APPEND(s->box->start.waiters, w);
	return true;
}

static void start_tell_waiters(struct box *b, const char *id)
{
	struct start_waiter *w, *next;
	DL_FOREACH_SAFE (b->start.waiters, w, next) {
		if (strcmp(w->id, id) != 0)
			continue;
		DL_DELETE(b->start.waiters, w);
		box_answer_later(b, w->done, w->arg, NULL);
		free(w);
	}
}

void reconcile_stop(struct box *b)
{
	struct start_waiter *w, *next;
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "the server ends");
	DL_FOREACH_SAFE (b->start.waiters, w, next) {
		DL_DELETE(b->start.waiters, w);
		box_answer_later(b, w->done, w->arg, &e);
		free(w);
	}
}

/* The row of a paused sandbox says so; other statuses are found out anew. */
static void reconcile_add_row(void *arg, const void *found)
{
	const struct sandbox_record *row = found;
	if (!id_is_valid(row->id))
		return;
	struct sandbox *s = sandbox_from_row(arg, row);
	s->turn.taken = s->init.reconciling = true;
	s->box->start.reconciling++;
	sandbox_add(s);
	bool idle = s->status == SANDBOX_SUSPENDED || s->status == SANDBOX_FAILED;
	if (idle && s->paused_ms == 0) /* failed under an earlier version */
		s->paused_ms = s->last_active_ms;
	tenant_force_charge(s, idle ? CHARGE_DISK : CHARGE_ALL);
}

int reconcile_load(struct box *b)
{
	b->start.listing = b->start.listing_disks = true;
	if (store_each_sandbox(b->store, reconcile_add_row, b) < 0 || disks_load(b) < 0 ||
		execution_load_recorded(b) < 0)
		return -1;
	return code_load(b);
}

static void reconcile_reconciled(struct sandbox *s)
{
	struct box *b = s->box;
	char id[ID_SIZE];
	memcpy(id, s->id, ID_SIZE);
	b->start.reconciling--;
	s->init.reconciling = false;
	usage_begin(s);
	if (s->ephemeral && !execution_first(s))
		sandbox_terminate(s, CAUSE_COMPLETED);
	sandbox_release(s);
	if (!b->starting)
		execution_settle_recorded(b, id);
	start_tell_waiters(b, id);
	check_ready(b);
}

static void reconcile_change_stored(void *arg, int error)
{
	(void)error; /* it is in the log, and the next start comes to the same */
	reconcile_reconciled(arg);
}

/* Without its network a sandbox goes on, and reaches nothing. */
static void reconcile_networked(void *arg, const struct error *e)
{
	struct sandbox *s = arg;
	if (e)
		log_error("a sandbox has lost its network", "sandbox", s->id, "error", e->message);
	reconcile_reconciled(s);
}

static void reconcile_network(struct sandbox *s)
{
	if (s->network.mode == NETWORK_NONE)
		reconcile_reconciled(s);
	else
		network_apply(s, reconcile_networked, s);
}

/* ---- meant to be awake ---- */

static void reconcile_lose(struct sandbox *s)
{
	s->init.unheard &= s->ending.doomed; /* a delete ends what was not heard of */
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
	/* OOM kills of the time without a front are not attributed to a later process. */
	if (s->found_oom_kills > s->processes.oom_seen)
		s->processes.oom_seen = s->found_oom_kills;
	reconcile_network(s);
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

static void reconcile_frozen(void *arg, const struct error *e)
{
	struct sandbox *s = arg;
	if (e)
		log_error("a paused sandbox could not be frozen again", "sandbox", s->id, "error",
			e->message);
	reconcile_network(s);
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
	if (lives && (s->status == SANDBOX_SUSPENDED || s->status == SANDBOX_FAILED)) {
		sandbox_thaw(s, halt_thawed, s);
	} else if (s->status == SANDBOX_SUSPENDED || s->status == SANDBOX_FAILED) {
		reconcile_reconciled(s);
	} else if (s->status == SANDBOX_PAUSED && lives) {
		s->pause.frozen = stands;
		s->init.unheard = true;
		if (stands)
			reconcile_network(s);
		else
			sandbox_freeze(s, reconcile_frozen, s);
	} else if (s->status == SANDBOX_PAUSED) {
		log_info(
			"a paused sandbox has lost its memory; its disk is kept", "sandbox", s->id);
		sandbox_set_status(s, SANDBOX_SUSPENDED);
		tenant_force_charge(s, CHARGE_DISK);
		event_add(s, EVENT_SUSPENDED, CAUSE_CRASH, NULL);
		sandbox_store(s, SANDBOX_SUSPENDED, reconcile_change_stored, s);
	} else if (lives) {
		s->init.unheard = true;
		s->init.link = sandbox_link_new(s);
		if (stands)
			sandbox_thaw(s, reconcile_thawed, s);
		else
			sandbox_connect(s, reconcile_reconnected, NULL);
	} else {
		reconcile_lose(s);
	}
}

struct orphan {
	struct box *box;
	char id[ID_SIZE];
};

static void orphan_destroyed(void *arg, const struct warden_reply *reply)
{
	(void)arg;
	if (reply->error)
		log_error("cannot destroy what is in no store", "sandbox", reply->id, "error",
			strerror(reply->error));
}

/* A destroy removes the disk as well; a disk that could not be moved is left for the next start. */
static void orphan_moved(void *arg, int error)
{
	struct orphan *o = arg;
	if (error)
		o->box->driver->kill(o->box->driver, o->id, orphan_destroyed, o->box);
	else
		o->box->driver->destroy(o->box->driver, o->id, orphan_destroyed, o->box);
	free(o);
}

static void orphan_looked_up(void *arg, const void *row, int error)
{
	struct orphan *o = arg;
	const struct sandbox_record *record = row;
	if (record && record->ended_ms > 0)
		orphan_moved(o, 0);
	else if (!record && error == 0)
		disks_set_aside(o->box, DISK_BOX, o->id, orphan_moved, o);
	else
		orphan_moved(o, -1);
}

static void reconcile_orphan(struct box *b, const char *id)
{
	struct orphan *o = mem_new(sizeof *o);
	o->box = b;
	memcpy(o->id, id, ID_SIZE);
	store_find_sandbox(b->store, id, orphan_looked_up, o);
}

static void reconcile_list_ended(struct box *b)
{
	struct sandbox *s, *next;
	b->start.listing = false;
	DL_FOREACH_SAFE (b->sandboxes.order, s, next)
		if (s->init.reconciling && s->found == 0)
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
	b->start.begun = true;
	b->driver->next(b->driver, reply->id, list_answered, b);
	HASH_FIND(by_id, b->sandboxes.by_id, reply->id, ID_LEN, s);
	if (!s) {
		reconcile_orphan(b, reply->id);
	} else if (reply->flags && s->init.reconciling) {
		s->found = reply->flags;
		s->found_oom_kills = reply->usage.oom_kills;
		reconcile_reconcile(s);
	}
}

static void disks_reconciled(struct box *b)
{
	b->start.listing_disks = false;
	check_ready(b);
}

static void disks_owned(void *arg, const struct keeper_reply *reply)
{
	(void)arg;
	if (reply->error) /* the next start tries again */
		log_error("cannot write on the disks whose they are", "error",
			strerror(reply->error));
}

static void network_greeted(void *arg, const struct network_reply *reply)
{
	struct box *b = arg;
	b->network_lack = (enum network_step)reply->step;
	if (b->network_lack != NETWORK_STEP_NONE)
		log_warn(
			"sandboxes can have no network: this host cannot give one; see bunker doctor",
			"failed", network_step_name(b->network_lack));
	b->driver->next(b->driver, "", list_answered, b);
}

static void keeper_greeted(void *arg, const struct keeper_reply *reply)
{
	struct box *b = arg;
	b->has_quota = reply->flags & DISK_POOL_QUOTA;
	if (b->config.owner[0])
		b->driver->disk_own(b->driver, b->config.owner, disks_owned, b);
	layers_reconcile(b->catalogue);
	disks_reconcile(b, disks_reconciled);
	b->driver->network_hello(b->driver, network_greeted, b);
}

/* The keeper first: what an earlier front asked of it has happened by then, and can be found. */
void reconcile_start(struct box *b)
{
	uv_timer_start(&b->start.grace, start_grace_over, GRACE_MS, 0);
	b->driver->disk_hello(b->driver, keeper_greeted, b);
}
