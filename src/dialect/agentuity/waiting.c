#include "dialect/agentuity/waiting.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define GRACE_MS  1000
#define RETURN_MS 60000 /* after a restart; the SDK tries for half of it */

/* ---- executions that nobody waits for ---- */

struct agentuity_guard {
	struct agentuity *dialect;
	struct execution *execution;
	struct execution_watcher watcher;
	uv_timer_t timer;
	struct agentuity_guard *prev, *next;
};

static void handle_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void guard_end(struct agentuity_guard *g)
{
	DL_DELETE(g->dialect->guards, g);
	execution_unwatch(g->execution, &g->watcher);
	uv_close((uv_handle_t *)&g->timer, handle_free);
}

static void guard_due(uv_timer_t *timer)
{
	struct agentuity_guard *g = timer->data;
	if (execution_watched_by_none_but(g->execution, &g->watcher))
		execution_cancel(g->execution);
}

static void guard_alone(void *arg)
{
	struct agentuity_guard *g = arg;
	if (!g->dialect->server->ops->stopping)
		uv_timer_start(&g->timer, guard_due, GRACE_MS, 0);
}

static void guard_changed(void *arg)
{
	struct agentuity_guard *g = arg;
	if (execution_has_ended(g->execution))
		guard_end(g);
}

static void guard(struct agentuity *d, struct execution *x, uint64_t grace_ms)
{
	struct agentuity_guard *g = calloc(1, sizeof *g);
	if (!g)
		abort();
	g->dialect = d;
	g->execution = x;
	g->watcher = (struct execution_watcher){
		.changed = guard_changed, .alone = guard_alone, .arg = g};
	uv_timer_init(d->server->loop, &g->timer);
	g->timer.data = g;
	execution_watch(x, &g->watcher);
	DL_APPEND(d->guards, g);
	uv_timer_start(&g->timer, guard_due, grace_ms, 0);
}

void waiting_guard(struct agentuity *d, struct execution *x)
{
	if (!d->server->ops->stopping)
		guard(d, x, GRACE_MS);
}

static void guard_again(void *arg, struct execution *x)
{
	guard(arg, x, RETURN_MS);
}

void waiting_start(struct agentuity *d)
{
	execution_each_attended(d->server->box, guard_again, d);
}

void waiting_stop(struct agentuity *d)
{
	while (d->guards)
		guard_end(d->guards);
}
