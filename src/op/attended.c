/*
 * Commands that end when no client attends them: for APIs without a call that cancels, whose
 * clients drop their connections. A client that waits for such a command or reads its output
 * watches it; when only its guard has watched it for a while, it is cancelled.
 */
#include <stdlib.h>
#include <utlist.h>

#include "base/mem.h"
#include "op/op_core.h"

#define ALONE_MS  1000
#define RETURN_MS 60000 /* after a restart of the server: callers have to connect again */

struct op_guard {
	struct ops *ops;
	struct execution *execution;
	struct execution_watcher watcher;
	uv_timer_t timer;
	struct op_guard *prev, *next;
};

static void guard_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void guard_end(struct op_guard *g)
{
	DL_DELETE(g->ops->guards, g);
	execution_unwatch(g->execution, &g->watcher);
	uv_close((uv_handle_t *)&g->timer, guard_free);
}

static void guard_due(uv_timer_t *timer)
{
	struct op_guard *g = timer->data;
	if (execution_watched_by_none_but(g->execution, &g->watcher))
		execution_cancel(g->execution);
}

static void guard_alone(void *arg)
{
	struct op_guard *g = arg;
	if (!g->ops->stopping)
		uv_timer_start(&g->timer, guard_due, ALONE_MS, 0);
}

static void guard_changed(void *arg)
{
	struct op_guard *g = arg;
	if (execution_has_ended(g->execution))
		guard_end(g);
}

static void guard_begin(struct ops *ops, struct execution *x, uint64_t grace_ms)
{
	struct op_guard *g = mem_new(sizeof *g);
	g->ops = ops;
	g->execution = x;
	g->watcher = (struct execution_watcher){
		.changed = guard_changed, .alone = guard_alone, .arg = g};
	uv_timer_init(ops->loop, &g->timer);
	g->timer.data = g;
	execution_watch(x, &g->watcher);
	DL_APPEND(ops->guards, g);
	uv_timer_start(&g->timer, guard_due, grace_ms, 0);
}

void op_guard(struct ops *ops, struct execution *x)
{
	if (!ops->stopping)
		guard_begin(ops, x, ALONE_MS);
}

/* Executions that began under this front have a guard already. */
static void guard_again(void *arg, struct execution *x)
{
	struct ops *ops = arg;
	const struct op_guard *g;
	DL_FOREACH (ops->guards, g)
		if (g->execution == x)
			return;
	guard_begin(ops, x, RETURN_MS);
}

void ops_start(struct ops *ops)
{
	execution_each_attended(ops->box, guard_again, ops);
}

void ops_stop(struct ops *ops)
{
	ops->stopping = true;
	while (ops->guards)
		guard_end(ops->guards);
}
