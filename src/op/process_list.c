/* Lists of executions, from memory and from the store. */
#include <string.h>

#include "op/op_core.h"
#include "op/process.h"

struct list_op {
	struct op op;
	struct op_process_list request;
	unsigned left;
	bool more;
};

static void process_list_tell(struct list_op *l, const struct execution_view *view)
{
	op_emit(&l->op, &(struct op_event){.kind = OP_EXECUTION, .execution = view});
}

static void list_ended_row(void *arg, const struct execution_view *view)
{
	struct list_op *l = arg;
	if (view && l->left == 0) {
		l->more = true;
	} else if (view && !l->op.gone) {
		l->left--;
		process_list_tell(l, view);
	}
	if (!view && op_awaited(&l->op))
		op_done(&l->op, &(struct op_event){.kind = OP_DONE, .more = l->more});
}

/* Asks for one more than is told: whether there is one. */
static void process_list_ended(struct list_op *l)
{
	const struct op_process_list *r = &l->request;
	struct error e;
	struct sandbox_view view = {0};
	const struct sandbox *s = l->op.tenant ? NULL : op_sandbox(&l->op, &e);
	if (s)
		sandbox_view(s, &view);
	op_await(&l->op);
	execution_list_ended(l->op.ops->box,
		&(struct execution_filter){.tenant = l->op.tenant ? l->op.tenant : view.tenant,
			.sandbox_id = l->op.sandbox,
			.kinds = r->kinds,
			.before_ms = r->before_ms,
			.before_id = r->before_id,
			.limit = r->limit + 1},
		list_ended_row, l);
}

/* False: the caller has left. */
static bool list_running(struct list_op *l, const struct sandbox *s)
{
	struct execution_view view;
	const struct op_process_list *r = &l->request;
	for (struct execution *x = execution_first(s); x; x = execution_next(x)) {
		execution_view(x, &view);
		if (execution_has_ended(x) || (r->name && strcmp(view.name, r->name) != 0) ||
			(r->kinds && !((r->kinds >> view.kind) & 1)))
			continue;
		if (!op_emit(&l->op, &(struct op_event){.kind = OP_EXECUTION, .execution = &view}))
			return false;
	}
	return true;
}

static void list_op_ask(struct op *op)
{
	struct list_op *l = (struct list_op *)op;
	struct error e;
	const struct sandbox *s = l->request.running && l->request.before_ms == 0 && op->sandbox
					  ? op_sandbox(op, &e)
					  : NULL;
	if (s && !list_running(l, s))
		return;
	if (l->request.ended)
		process_list_ended(l);
	else
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_process_list(const struct op_call *call, const struct op_process_list *request)
{
	static const struct op_type type = {"process.list", .ask = list_op_ask};
	struct sandbox *s;
	struct list_op *l = (struct list_op *)op_new(call, &type, sizeof *l, &s);
	l->request = *request;
	l->left = request->limit;
	return &l->op;
}
