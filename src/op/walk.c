#include "op/walk.h"

#include "base/cleanup.h"

void op_walk_resume(struct op *op)
{
	struct walk_op *w = (struct walk_op *)op;
	enum op_reason reason = OP_ERROR;
	struct error e = {0};
	if (w->finished) {
		op_done(op, &(struct op_event){.kind = OP_DONE, .truncated = w->truncated});
	} else if (w->comparison) {
		comparison_resume(w->comparison);
	} else if (!w->begun) {
		w->begun = true;
		if (w->begin(w, &reason, &e) < 0)
			op_fail(op, reason, &e);
	}
}

void walk_release(struct op *op, enum op_end end)
{
	struct walk_op *w = (struct walk_op *)op;
	(void)end;
	if (w->comparison)
		comparison_cancel(take_ptr(w->comparison));
}

bool walk_emit(struct walk_op *w, const struct op_event *event)
{
	if (!op_emit(&w->op, event))
		return false;
	if (w->op.paused && w->comparison)
		comparison_pause(w->comparison);
	return true;
}

bool walk_emit_bytes(struct walk_op *w, struct buf *bytes)
{
	autobuf taken = buf_take(bytes);
	return taken.len == 0 || walk_emit(w, &(struct op_event){.kind = OP_DATA, .data = &taken});
}

void op_walk_finish(struct walk_op *w, bool truncated, const struct error *e)
{
	struct error gone;
	w->comparison = NULL;
	/* The sandbox is gone, which explains the error of its disk. */
	if (e && op_has_lost_sandbox(&w->op, &gone)) {
		op_fail(&w->op, OP_NO_SANDBOX, &gone);
		return;
	}
	if (e) {
		op_fail(&w->op, OP_ERROR, e);
		return;
	}
	w->finished = true;
	w->truncated = truncated;
	if (!w->op.paused)
		op_walk_resume(&w->op);
}
