/* The core's start and end, and what its parts share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "box/code/code_core.h"
#include "box/core/box.h"
#include "box/core/pool.h"
#include "box/core/reconcile.h"
#include "box/core/retention.h"
#include "box/disk/disks.h"
#include "box/files/part.h"
#include "box/files/trust_put.h"
#include "box/port/part.h"
#include "box/process/kept.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/ending.h"
#include "box/sandbox/expiry.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/network.h"
#include "box/sandbox/object.h"
#include "box/sandbox/pause.h"
#include "box/sandbox/trust.h"
#include "box/sandbox/traffic.h"
#include "box/template/catalogue.h"
#include "box/vault/vault.h"

#define WATCHDOG_MS 5000

const struct box_config *box_config(const struct box *b)
{
	return &b->config;
}

void box_counters(const struct box *b, struct box_counters *out)
{
	*out = b->counters;
	out->pooled = b->pool.count;
}

void box_on_warden_lost(struct box *b, void (*lost)(void *arg), void *arg)
{
	b->core.warden_lost = lost;
	b->core.warden_lost_arg = arg;
}

static void warden_lost(void *arg)
{
	struct box *b = arg;
	if (b->core.warden_lost)
		b->core.warden_lost(b->core.warden_lost_arg);
}

/* ---- old executions ---- */

static void close_if_done(struct box *b);

static const struct sandbox_part *const parts[] = {&pause_part, &network_part, &traffic_part,
	&trust_part, &process_part, &files_part, &port_part, &code_part, &disk_part, NULL};
static const struct box_hooks hooks = {
	.check_closed = close_if_done,
	.clock = expiry_check,
	.sandbox_gone = pool_refill,
	.each_snapshot = snapshots_each,
	.volume_name = volume_name_of,
	.pooled_lost = pool_discard,
	.put_trust = trust_put,
};

static void watchdog_fired(uv_timer_t *timer)
{
	lease_check_clock(timer->data);
	execution_check_overdue(timer->data);
	execution_retry_ends(timer->data);
	sandbox_retry_ends(timer->data);
	sandbox_check_settling(timer->data);
}

static void start_timers(struct box *b)
{
	uv_timer_init(b->loop, &b->clock.timer);
	uv_timer_init(b->loop, &b->core.retention_timer);
	uv_timer_init(b->loop, &b->pool.refill_timer);
	uv_timer_init(b->loop, &b->core.watchdog);
	uv_timer_init(b->loop, &b->later.timer);
	uv_timer_init(b->loop, &b->sampler.timer);
	uv_timer_init(b->loop, &b->start.grace);
	b->start.grace.data = b;
	b->clock.timer.data = b->core.retention_timer.data = b->pool.refill_timer.data =
		b->core.watchdog.data = b;
	uv_timer_init(b->loop, &b->code.timer);
	b->later.timer.data = b->code.timer.data = b->sampler.timer.data = b;
	uv_timer_start(&b->core.watchdog, watchdog_fired, WATCHDOG_MS, WATCHDOG_MS);
	retention_start(b);
}

/*
 * Loads the keys of which tags and brokers' names are made. All fronts have the same, so that each
 * knows what earlier ones have signed and named.
 */
static int load_keys(struct box *b, struct error *e)
{
	uint8_t secret[STORE_SECRET_SIZE];
	id_random(secret, sizeof secret);
	id_random(b->broker_key, sizeof b->broker_key);
	if (store_keep_secret(b->store, "executions", secret, e) < 0 ||
		store_keep_secret(b->store, "brokers", b->broker_key, e) < 0)
		return -1;
	memcpy(b->processes.tag_key, secret, sizeof b->processes.tag_key);
	return 0;
}

/* What was read from the database. */
static void box_unload(struct box *b)
{
	if (b->catalogue)
		catalogue_close(b);
	kept_close(b);
	vault_close(b->vault);
}

static int box_load(struct box *b, struct error *e)
{
	if (load_keys(b, e) < 0 || vault_open(&b->vault, b->store, b->config.secret_key, e) < 0)
		return -1;
	b->config.secret_key = NULL; /* its owner overwrites it */
	if (kept_open(b) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot read from the database what is kept");
	if (catalogue_open(b, e) < 0)
		return -1;
	if (reconcile_load(b) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot read the sandboxes from the database");
	return 0;
}

int box_open(struct box **ret, uv_loop_t *loop, struct store *store,
	const struct driver_links *links, const struct box_config *config,
	const struct box_events *events, struct error *e)
{
	struct box *b = calloc(1, sizeof *b);
	if (!b)
		return error_set(e, ERROR_INTERNAL, "out of memory");
	b->loop = loop;
	b->store = store;
	b->parts = parts;
	b->hooks = &hooks;
	b->config = *config;
	lease_start_clock(b);
	b->starting = true;
	b->start.ready = events->ready;
	b->start.found = events->found;
	b->start.arg = events->arg;
	struct driver_links told = *links;
	told.egress_told = network_told;
	if (box_load(b, e) < 0 ||
		native_driver_open(&b->driver, loop, &told, warden_lost, b, e) < 0) {
		box_unload(b);
		free(b);
		return -1;
	}
	start_timers(b);
	reconcile_start(b);
	*ret = b;
	return 0;
}

/* ---- end ---- */

static void part_closed(struct box *b)
{
	if (--b->end.handles_open > 0)
		return;
	void (*closed)(void *arg) = b->end.closed;
	void *arg = b->end.closed_arg;
	execution_drop_recorded(b);
	kept_close(b);
	vault_close(b->vault);
	free(b);
	closed(arg);
}

static void handle_closed(uv_handle_t *handle)
{
	part_closed(handle->data);
}

static void driver_closed(void *arg)
{
	part_closed(arg);
}

static void free_sandboxes(struct box *b)
{
	struct sandbox *s, *next;
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "the server ends");
	DL_FOREACH_SAFE (b->sandboxes.order, s, next) {
		/* Sandboxes go on without the front: nothing is sent, and no process is ended. */
		init_link_close(s->init.link);
		s->init.link = NULL;
		execution_abandon_all(s);
		files_end_all(s, &e);
		sandbox_free(s);
	}
}

/* Creations and deletions are carried through, and results get into the store. Only the next start
 * needs what is not found yet. */
static bool has_unfinished_work(const struct box *b)
{
	const struct sandbox *s;
	const struct execution *x;
	DL_FOREACH (b->sandboxes.order, s)
		if (b->end.draining || (s->turn.taken && !s->init.reconciling) || s->ending.doomed)
			return true;
	for (x = b->processes.by_id; x; x = x->by_id.next)
		if (execution_has_ended(x) && !x->committed && !x->unstorable)
			return true;
	return b->catalogue->jobs || store_is_busy(b->store) || b->disks.porters ||
	       b->driver->is_busy(b->driver) || b->pool.booting > 0 ||
	       b->disks.snapshots_pending > 0 || b->disks.comparisons > 0 ||
	       b->core.bundle_imports > 0 || b->core.measurements > 0 ||
	       b->core.portable_imports > 0 || b->later.first || b->processes.sweeping;
}

static void close_if_done(struct box *b)
{
	if (b->end.handles_open > 0 || has_unfinished_work(b))
		return;
	free_sandboxes(b);
	tenants_free(b);
	disks_free(b);
	catalogue_close(b);
	b->end.handles_open = 9;
	uv_close((uv_handle_t *)&b->start.grace, handle_closed);
	uv_close((uv_handle_t *)&b->code.timer, handle_closed);
	uv_close((uv_handle_t *)&b->later.timer, handle_closed);
	uv_close((uv_handle_t *)&b->sampler.timer, handle_closed);
	uv_close((uv_handle_t *)&b->core.watchdog, handle_closed);
	uv_close((uv_handle_t *)&b->clock.timer, handle_closed);
	uv_close((uv_handle_t *)&b->pool.refill_timer, handle_closed);
	uv_close((uv_handle_t *)&b->core.retention_timer, handle_closed);
	b->driver->close(b->driver, driver_closed, b);
}

static void close_now(uv_timer_t *timer)
{
	close_if_done(timer->data);
}

void box_close(struct box *b, bool drain, void (*closed)(void *arg), void *arg)
{
	struct sandbox *s, *next;
	b->closing = true;
	b->end.draining = drain;
	b->end.closed = closed;
	b->end.closed_arg = arg;
	pool_drain(b);
	build_jobs_stop(b->catalogue);
	porters_stop(b);
	reconcile_stop(b);
	if (drain)
		DL_FOREACH_SAFE (b->sandboxes.order, s, next)
			sandbox_terminate(s, CAUSE_SHUTDOWN);
	/* Never before the call has returned. */
	uv_timer_start(&b->clock.timer, close_now, 0, 50);
}
