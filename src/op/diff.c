/* Diffs of a sandbox, made by the keeper and told as they are found. */
#include "op/disks.h"
#include "op/walk.h"

struct diff_op {
	struct walk_op walk;
	struct op_diff request; /* what it points at: until it has begun */
};

static void diff_change(void *arg, const struct disk_change *change)
{
	walk_emit(arg, &(struct op_event){.kind = OP_ROW, .disk_change = change});
}

static void diff_data(void *arg, const char *bytes, size_t len)
{
	struct buf data = {0};
	buf_append(&data, bytes, len);
	walk_emit_bytes(arg, &data);
}

static void diff_done(void *arg, bool truncated, const struct error *e)
{
	struct diff_op *d = arg;
	struct error cut;
	if (!e && truncated && d->request.form != DIFF_RECORDS) {
		error_set(&cut, ERROR_NOT_SUPPORTED,
			"some directories are too deep for this form of a comparison");
		e = &cut;
	}
	op_walk_finish(&d->walk, truncated, e);
}

static int diff_begin(struct walk_op *w, enum op_reason *reason, struct error *e)
{
	static const struct comparison_events events = {diff_change, diff_data, diff_done};
	const struct op_diff *r = &((struct diff_op *)w)->request;
	struct checkpoint *checkpoint = NULL;
	struct snapshot *snapshot = NULL;
	struct sandbox *s = op_sandbox(&w->op, e);
	(void)reason;
	if (!s)
		return -1;
	if (r->checkpoint && !(checkpoint = checkpoint_find(s, r->checkpoint)))
		return error_set_field(e, ERROR_NOT_FOUND, "checkpoint",
			"there is no checkpoint '%.64s'", r->checkpoint);
	if (r->snapshot && !(snapshot = snapshot_find(w->op.ops->box, w->op.tenant, r->snapshot)))
		return error_set_field(e, ERROR_NOT_FOUND, "snapshot",
			"there is no snapshot '%.128s'", r->snapshot);
	w->comparison = comparison_begin(s, checkpoint, snapshot, r->form, &events, w, e);
	return w->comparison ? 0 : -1;
}

struct op *op_diff(const struct op_call *call, const struct op_diff *request)
{
	static const struct op_type type = {
		"sandbox.diff", .resume = op_walk_resume, .release = walk_release};
	struct sandbox *s;
	struct diff_op *d = (struct diff_op *)op_new(call, &type, sizeof *d, &s);
	d->walk.begin = diff_begin;
	d->request = *request;
	return &d->walk.op;
}
