/* Commands joined after they began, or after their end. */
#include <string.h>

#include "op/exec_op.h"

static void attach_wait_over(uv_timer_t *timer)
{
	struct exec_op *x = timer->data;
	op_timer_stop(&x->wait);
	exec_tell(x);
}

static int attach_position(
	struct exec_op *x, const struct execution_view *view, unsigned i, struct error *e)
{
	const struct op_attach *a = &x->attach;
	uint64_t *position = &x->watcher.position[i], length = view->length[i];
	if (a->from_end[i])
		*position = *position < length ? length - *position : 0;
	if (!a->checked[i] || view->status <= EXECUTION_RUNNING || *position <= length)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, a->checked[i],
		"the output ends at byte %llu", (unsigned long long)length);
}

static int attach_positions(struct exec_op *x, struct execution *found, struct error *e)
{
	struct execution_view view;
	execution_view(found, &view);
	execution_arrived(found, x->until);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		if (attach_position(x, &view, i, e) < 0)
			return -1;
	if (x->attach.where_left)
		execution_seen(found, x->watcher.position);
	memcpy(x->began, x->watcher.position, sizeof x->began);
	return 0;
}

static void attach_found(struct op *op, struct execution *found)
{
	struct exec_op *x = (struct exec_op *)op;
	struct error e;
	if (!found) {
		op_fail_missing(op);
		return;
	}
	if (attach_positions(x, found, &e) < 0) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	x->execution = found;
	x->past = execution_has_ended(found);
	execution_watch(found, &x->watcher);
	op_has_begun(op);
	if (x->attach.wait_ms > 0)
		x->wait = op_timer_start(op, x->attach.wait_ms, attach_wait_over);
	exec_tell(x);
}

static void attach_resume(struct op *op)
{
	struct exec_op *x = (struct exec_op *)op;
	if (x->execution || x->exited) {
		exec_tell(x);
	} else if (!x->sought) {
		x->sought = true;
		op_search(&x->search);
	}
}

static const struct op_type attach_type = {
	.name = "exec.attach",
	.outlives_caller = true,
	.resume = attach_resume,
	.release = exec_release,
	.put = exec_input_put,
	.room = exec_input_room,
};

struct op *op_attach(const struct op_call *call, const struct op_attach *request)
{
	struct exec_op *x = exec_new(call, &attach_type, request->piece);
	x->joined = true;
	x->attach = *request;
	x->search = (struct op_search){.op = &x->op,
		.ref = request->process,
		.among_ended = request->among_ended,
		.found = attach_found};
	x->request.wants = request->wants;
	x->watcher.paced = request->wants == OP_EXEC_STREAM;
	memcpy(x->watcher.position, request->position, sizeof x->watcher.position);
	memcpy(x->watcher.ignores, request->ignores, sizeof x->watcher.ignores);
	return &x->op;
}
