/* Imports: a file is put piece by piece; nothing is kept of one that its caller leaves. */
#include "base/cleanup.h"
#include "box/core/bundle.h"
#include "box/core/portable.h"
#include "op/disks.h"
#include "op/op_core.h"

struct import_op {
	struct op op;
	struct bundle_import *bundle; /* NULL: it is over, or it is the other */
	struct portable_import *portable;
};

/* An import reports only after its input has ended or failed. */
static void import_resume(struct op *op)
{
	(void)op;
}

/* ROOM is told even to a paused caller: it concerns the other direction. */
static void op_imports_import_has_room(void *arg)
{
	struct op *op = arg;
	op->event(op->arg, &(struct op_event){.kind = OP_ROOM});
}

/* ---- bundles ---- */

static void bundle_import_done(void *arg, struct snapshot *s, const struct error *e)
{
	struct import_op *i = arg;
	struct snapshot_record view;
	i->bundle = NULL;
	if (e) {
		op_fail(&i->op, OP_ERROR, e);
		return;
	}
	snapshot_view(s, &view);
	op_done(&i->op, &(struct op_event){.kind = OP_DONE, .snapshot = &view});
}

static void bundle_import_put(struct op *op, const struct op_item *item)
{
	struct bundle_import *import = ((struct import_op *)op)->bundle;
	if (item->kind == OP_ITEM_DATA)
		bundle_import_write(import, item->bytes.data, item->bytes.len);
	else if (item->kind == OP_ITEM_END)
		bundle_import_end(import);
}

static size_t bundle_import_op_room(const struct op *op)
{
	return bundle_import_room(((const struct import_op *)op)->bundle);
}

static void bundle_import_release(struct op *op, enum op_end end)
{
	struct import_op *i = (struct import_op *)op;
	(void)end;
	if (i->bundle)
		bundle_import_cancel(take_ptr(i->bundle));
}

struct op *op_bundle_import(const struct op_call *call, const struct snapshot_spec *spec)
{
	static const struct op_type type = {"snapshot.import", true, false, import_resume,
		bundle_import_release, bundle_import_put, bundle_import_op_room};
	static const struct bundle_import_events events = {
		op_imports_import_has_room, bundle_import_done};
	struct sandbox *s;
	struct import_op *i = (struct import_op *)op_new(call, &type, sizeof *i, &s);
	if (!i->op.failed)
		i->op.failed = bundle_import_begin(i->op.ops->box, i->op.tenant, spec, &events, i,
				       &i->bundle, &i->op.failure) < 0;
	return &i->op;
}

/* ---- portable sandboxes ---- */

static void portable_import_done(void *arg, struct sandbox *s, const struct error *e)
{
	struct import_op *i = arg;
	struct sandbox_view view;
	i->portable = NULL;
	if (e) {
		op_fail(&i->op, OP_ERROR, e);
		return;
	}
	sandbox_view(s, &view);
	op_done(&i->op, &(struct op_event){.kind = OP_DONE, .sandbox = &view});
}

static void portable_import_put(struct op *op, const struct op_item *item)
{
	struct portable_import *import = ((struct import_op *)op)->portable;
	if (item->kind == OP_ITEM_DATA)
		portable_import_write(import, item->bytes.data, item->bytes.len);
	else if (item->kind == OP_ITEM_END)
		portable_import_end(import);
}

static size_t portable_import_op_room(const struct op *op)
{
	return portable_import_room(((const struct import_op *)op)->portable);
}

static void portable_import_release(struct op *op, enum op_end end)
{
	struct import_op *i = (struct import_op *)op;
	(void)end;
	if (i->portable)
		portable_import_cancel(take_ptr(i->portable));
}

struct op *op_portable_import(const struct op_call *call, const struct sandbox_spec *spec)
{
	static const struct op_type type = {"sandbox.import", true, false, import_resume,
		portable_import_release, portable_import_put, portable_import_op_room};
	static const struct portable_import_events events = {
		op_imports_import_has_room, portable_import_done};
	struct sandbox *s;
	struct import_op *i = (struct import_op *)op_new(call, &type, sizeof *i, &s);
	struct sandbox_spec owned = *spec;
	owned.tenant = i->op.tenant;
	if (!i->op.failed)
		i->op.failed = portable_import_begin(i->op.ops->box, &owned, &events, i,
				       &i->portable, &i->op.failure) < 0;
	return &i->op;
}
