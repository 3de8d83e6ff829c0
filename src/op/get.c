/* One sandbox as it is, or as soon as it is as its caller wants it; also when it has ended. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "op/life.h"
#include "op/op_core.h"

struct get_op {
	struct op op;
	struct op_get request;
	struct sandbox_watcher watcher;
	uv_timer_t *timer; /* NULL: it does not wait */
};

static void get_stop_waiting(struct get_op *g)
{
	if (!g->timer)
		return;
	sandbox_unwatch(g->op.ops->box, &g->watcher);
	uv_close((uv_handle_t *)take_ptr(g->timer), (uv_close_cb)free);
}

static void get_release(struct op *op, enum op_end end)
{
	(void)end;
	get_stop_waiting((struct get_op *)op);
}

static void get_fail(struct get_op *g)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
	op_fail(&g->op, OP_NO_SANDBOX, &e);
}

/* ---- its command ---- */

static bool get_tell_command(struct get_op *g, const struct execution_view *view)
{
	return op_emit(
		&g->op, &(struct op_event){
				.kind = view->status > EXECUTION_RUNNING ? OP_EXITED : OP_STARTED,
				.execution = view});
}

static void get_command_found(void *arg, const struct execution_view *view, const struct error *e)
{
	struct get_op *g = arg;
	if (view && !g->op.gone)
		get_tell_command(g, view);
	if (view || !op_awaited(&g->op))
		return;
	if (e)
		op_fail(&g->op, OP_ERROR, e);
	else
		op_done(&g->op, &(struct op_event){.kind = OP_DONE});
}

static void get_find_command(struct get_op *g)
{
	struct op *op = &g->op;
	struct execution_view view;
	struct error e;
	const struct sandbox *s = op_sandbox(op, &e);
	const struct execution *x = s ? execution_first(s) : NULL;
	if (x) {
		execution_view(x, &view);
		if (get_tell_command(g, &view))
			op_done(op, &(struct op_event){.kind = OP_DONE});
		return;
	}
	const struct execution_filter filter = {.tenant = op->tenant,
		.sandbox_id = op->sandbox,
		.kinds = 1u << EXECUTION_COMMAND,
		.limit = 1};
	op_await(op);
	execution_list_ended(op->ops->box, &filter, get_command_found, g);
}

/* ---- the sandbox ---- */

/* view is NULL when there is none. */
static void get_tell(struct get_op *g, const struct sandbox_view *view)
{
	struct op *op = &g->op;
	bool ended = view && view->status == SANDBOX_TERMINATED;
	bool deleted = view && view->status == SANDBOX_DELETED;
	get_stop_waiting(g);
	if (!view || (ended && !g->request.ended) || (deleted && !g->request.deleted))
		get_fail(g);
	else if (!g->request.command)
		op_done(op, &(struct op_event){.kind = OP_DONE, .sandbox = view});
	else if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .sandbox = view}))
		return;
	else if (view->ephemeral)
		get_find_command(g);
	else
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

static void get_loaded(void *arg, const struct sandbox_view *view, const struct error *e)
{
	if (!op_awaited(arg))
		return;
	if (e)
		op_fail(arg, OP_ERROR, e);
	else
		get_tell(arg, view);
}

static bool get_is_awaited(const struct get_op *g, const struct sandbox_view *view)
{
	return (g->request.until >> sandbox_apparent_status(view)) & 1;
}

/* An ended sandbox does not change any more. */
static void get_status_changed(void *arg, const struct sandbox *s)
{
	struct sandbox_view view;
	sandbox_view(s, &view);
	if (get_is_awaited(arg, &view) || view.status == SANDBOX_DELETED ||
		view.status == SANDBOX_TERMINATED)
		get_tell(arg, &view);
}

static void get_waited_enough(uv_timer_t *timer)
{
	struct get_op *g = timer->data;
	struct sandbox_view view;
	struct error e;
	const struct sandbox *s = op_sandbox(&g->op, &e);
	if (s)
		sandbox_view(s, &view);
	get_tell(g, s ? &view : NULL);
}

static void get_wait(struct get_op *g)
{
	g->timer = mem_new(sizeof *g->timer);
	uv_timer_init(g->op.ops->loop, g->timer);
	g->timer->data = g;
	uv_timer_start(g->timer, get_waited_enough, (uint64_t)g->request.wait_ms, 0);
	g->watcher = (struct sandbox_watcher){.changed = get_status_changed, .arg = g};
	memcpy(g->watcher.id, g->op.sandbox, ID_SIZE);
	sandbox_watch(g->op.ops->box, &g->watcher);
}

static void get_ask(struct op *op)
{
	struct get_op *g = (struct get_op *)op;
	struct sandbox_view view;
	struct error e;
	const struct sandbox *s = op_sandbox(op, &e);
	if (s)
		sandbox_view(s, &view);
	if (s && g->request.wait_ms > 0 && !get_is_awaited(g, &view)) {
		get_wait(g);
	} else if (s) {
		get_tell(g, &view);
	} else if (!id_is_valid(op->sandbox)) {
		get_fail(g);
	} else {
		op_await(op);
		sandbox_load_ended(op->ops->box, op->tenant, op->sandbox, get_loaded, g);
	}
}

struct op *op_get(const struct op_call *call, const struct op_get *request)
{
	static const struct op_type type = {
		.name = "get", .ask = get_ask, .release = get_release, .early = true};
	struct sandbox *s;
	struct op_call about = *call;
	about.finds_gone = request->ended || request->deleted;
	struct get_op *g = (struct get_op *)op_new(&about, &type, sizeof *g, &s);
	g->request = *request;
	return &g->op;
}
