/* Snapshots as files: a manifest, the disk as tar.zst, and a sum over both. */
#include "image/bundle.h"
#include "op/disks.h"
#include "op/walk.h"

struct bundle_op {
	struct walk_op walk;
	const char *ref; /* the request's: until it has begun */
	struct bundle_sum sum;
	struct buf manifest; /* not told yet */
};

/* False: the operation is gone. */
static bool bundle_tell(struct bundle_op *b, struct buf *bytes)
{
	bundle_sum_add(&b->sum, bytes->data, bytes->len);
	return walk_emit_bytes(&b->walk, bytes);
}

static void bundle_data(void *arg, const char *bytes, size_t len)
{
	struct bundle_op *b = arg;
	struct buf data = buf_take(&b->manifest);
	buf_append(&data, bytes, len);
	bundle_tell(b, &data);
}

static void bundle_done(void *arg, bool truncated, const struct error *e)
{
	struct bundle_op *b = arg;
	struct error cut;
	struct buf end = buf_take(&b->manifest);
	b->walk.comparison = NULL;
	if (!e && truncated) {
		error_set(&cut, ERROR_INTERNAL, "the snapshot's directories are too deep");
		e = &cut;
	}
	if (e) {
		buf_finish(&end);
		op_walk_finish(&b->walk, false, e);
		return;
	}
	bundle_sum_add(&b->sum, end.data, end.len);
	bundle_append_end(&end, &b->sum);
	if (walk_emit_bytes(&b->walk, &end))
		op_walk_finish(&b->walk, false, NULL);
}

static int bundle_begin(struct walk_op *w, enum op_reason *reason, struct error *e)
{
	static const struct comparison_events events = {.data = bundle_data, .done = bundle_done};
	struct bundle_op *b = (struct bundle_op *)w;
	struct snapshot_record view;
	struct snapshot *s = snapshot_find(w->op.ops->box, w->op.tenant, b->ref);
	*reason = s ? OP_ERROR : OP_NO_SNAPSHOT;
	if (!s)
		return error_set(e, ERROR_NOT_FOUND, "there is no such snapshot");
	snapshot_view(s, &view);
	if (view.status == DISK_LOST)
		return error_set(e, ERROR_INTERNAL, "the disk of this snapshot is gone");
	w->comparison = comparison_begin_snapshot(s, DIFF_ARCHIVE, &events, b, e);
	if (!w->comparison)
		return -1;
	bundle_sum_begin(&b->sum);
	bundle_append_manifest(&b->manifest,
		&(struct bundle_manifest){view.id, view.name, view.tag, view.description,
			view.template_name, view.created_ms, view.bytes, view.files, view.env.data,
			view.env.len, NULL, view.metadata});
	walk_emit(w, &(struct op_event){.kind = OP_ROW, .snapshot = &view});
	return 0;
}

static void bundle_release(struct op *op, enum op_end end)
{
	walk_release(op, end);
	buf_finish(&((struct bundle_op *)op)->manifest);
}

struct op *op_bundle_export(const struct op_call *call, const char *snapshot)
{
	static const struct op_type type = {
		"snapshot.export", .resume = op_walk_resume, .release = bundle_release};
	struct sandbox *s;
	struct bundle_op *b = (struct bundle_op *)op_new(call, &type, sizeof *b, &s);
	b->walk.begin = bundle_begin;
	b->ref = snapshot;
	return &b->walk.op;
}
