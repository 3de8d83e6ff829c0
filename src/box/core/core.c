/* The core's start and end, and what its parts share. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/code/code_core.h"
#include "box/core/box.h"
#include "box/core/pool.h"
#include "box/core/reconcile.h"
#include "box/disk/disks.h"
#include "box/files/part.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/ending.h"
#include "box/sandbox/expiry.h"
#include "box/sandbox/object.h"
#include "box/sandbox/pause.h"
#include "box/template/catalogue.h"

#define RETENTION_CHECK_MS (10 * 60 * 1000)
#define WATCHDOG_MS        5000

const struct box_config *box_config(const struct box *b)
{
	return &b->config;
}

uint32_t box_layers(const struct box *b)
{
	return b->layers;
}

void box_counters(const struct box *b, struct box_counters *out)
{
	*out = b->counters;
	out->pooled = b->pool_count;
}

void box_on_warden_lost(struct box *b, void (*lost)(void *arg), void *arg)
{
	b->warden_lost = lost;
	b->warden_lost_arg = arg;
}

static void warden_lost(void *arg)
{
	struct box *b = arg;
	if (b->warden_lost)
		b->warden_lost(b->warden_lost_arg);
}

/* ---- old executions ---- */

static void close_if_done(struct box *b);

static void execution_expired(void *arg, const char *id)
{
	struct box *b = arg;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		char path[256];
		output_path(b, id, i, path);
		unlink(path);
	}
}

static void retention_timer_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	int64_t before = clock_wall_ms() - b->config.retention_ms;
	store_expire_executions(b->store, before, execution_expired, b);
	store_expire_sandboxes(b->store, before);
	layers_collect(b->catalogue);
}

/* ---- start ---- */

static const struct sandbox_part *const parts[] = {
	&pause_part, &process_part, &files_part, &code_part, &disk_part, NULL};
static const struct box_hooks hooks = {
	.check_closed = close_if_done,
	.clock = expiry_check,
	.sandbox_gone = pool_refill,
	.each_snapshot = snapshots_each,
	.volume_name = volume_name_of,
	.pooled_lost = pool_discard,
};

static void watchdog_fired(uv_timer_t *timer)
{
	execution_check_overdue(timer->data);
	execution_retry_ends(timer->data);
	sandbox_retry_ends(timer->data);
	sandbox_check_settling(timer->data);
}

static void start_timers(struct box *b)
{
	uv_timer_init(b->loop, &b->clock);
	uv_timer_init(b->loop, &b->retention_timer);
	uv_timer_init(b->loop, &b->refill_timer);
	uv_timer_init(b->loop, &b->watchdog);
	uv_timer_init(b->loop, &b->later_timer);
	uv_timer_init(b->loop, &b->sampler);
	b->clock.data = b->retention_timer.data = b->refill_timer.data = b->watchdog.data = b;
	uv_timer_init(b->loop, &b->code_timer);
	b->later_timer.data = b->code_timer.data = b->sampler.data = b;
	uv_timer_start(&b->watchdog, watchdog_fired, WATCHDOG_MS, WATCHDOG_MS);
	uv_timer_start(&b->retention_timer, retention_timer_fired, 1000, RETENTION_CHECK_MS);
}

int box_open(struct box **ret, uv_loop_t *loop, struct store *store, int warden_fd, int keeper_fd,
	const struct box_config *config, void (*ready)(void *arg), void *arg, struct error *e)
{
	struct box *b = calloc(1, sizeof *b);
	if (!b)
		return error_set(e, ERROR_INTERNAL, "out of memory");
	b->loop = loop;
	b->store = store;
	b->parts = parts;
	b->hooks = &hooks;
	b->config = *config;
	b->ready = ready;
	b->ready_arg = arg;
	if (catalogue_open(b, e) < 0) {
		catalogue_close(b);
		free(b);
		return -1;
	}
	if (reconcile_load(b) < 0) {
		catalogue_close(b);
		free(b);
		return error_set(e, ERROR_INTERNAL, "cannot read the sandboxes from the database");
	}
	if (native_driver_open(&b->driver, loop, warden_fd, keeper_fd, warden_lost, b, e) < 0) {
		catalogue_close(b);
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
	if (--b->handles_open > 0)
		return;
	void (*closed)(void *arg) = b->closed;
	void *arg = b->closed_arg;
	execution_drop_recorded(b);
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
	DL_FOREACH_SAFE (b->order, s, next) {
		/* They go on without us: nothing is sent, and nothing of theirs is ended. */
		init_link_close(s->init.link);
		s->init.link = NULL;
		execution_abandon_all(s);
		files_end_all(s, &e);
		sandbox_free(s);
	}
}

/* Creations and deletions are carried through, and results get into the store. */
static bool has_unfinished_work(const struct box *b)
{
	const struct sandbox *s;
	const struct execution *x;
	DL_FOREACH (b->order, s)
		if (b->draining || s->turn.taken || s->ending.doomed)
			return true;
	for (x = b->executions; x; x = x->by_id.next)
		if (execution_has_ended(x) && !x->committed && !x->unstorable)
			return true;
	return b->catalogue->jobs || store_is_busy(b->store) || b->porters ||
	       b->driver->is_busy(b->driver) || b->pool_booting > 0 || b->snapshots_pending > 0 ||
	       b->comparisons > 0 || b->imports > 0 || b->measurements > 0 || b->portables > 0 ||
	       b->later;
}

static void close_if_done(struct box *b)
{
	if (b->handles_open > 0 || has_unfinished_work(b))
		return;
	free_sandboxes(b);
	tenants_free(b);
	disks_free(b);
	catalogue_close(b);
	b->handles_open = 8;
	uv_close((uv_handle_t *)&b->code_timer, handle_closed);
	uv_close((uv_handle_t *)&b->later_timer, handle_closed);
	uv_close((uv_handle_t *)&b->sampler, handle_closed);
	uv_close((uv_handle_t *)&b->watchdog, handle_closed);
	uv_close((uv_handle_t *)&b->clock, handle_closed);
	uv_close((uv_handle_t *)&b->refill_timer, handle_closed);
	uv_close((uv_handle_t *)&b->retention_timer, handle_closed);
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
	b->draining = drain;
	b->closed = closed;
	b->closed_arg = arg;
	pool_drain(b);
	build_jobs_stop(b->catalogue);
	porters_stop(b);
	if (drain)
		DL_FOREACH_SAFE (b->order, s, next)
			sandbox_terminate(s, CAUSE_SHUTDOWN);
	/* Never before the call has returned. */
	uv_timer_start(&b->clock, close_now, 0, 50);
}
