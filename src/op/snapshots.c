/*
 * Snapshots. A creation that still waits for its turn ends with its caller; all other changes are
 * carried through.
 */
#include "op/snapshots.h"

#include <stdlib.h>
#include <string.h>

#include "box/disk/snapshot.h"
#include "op/op_core.h"

struct snapshot_op {
	struct op op;
	const char *ref, *tag; /* the request's */
	struct snapshot_spec spec;
	struct snapshot_filter filter;
	char id[ID_SIZE]; /* of the snapshot being changed */
};

/* NULL: the operation has failed, and is gone. */
static struct snapshot *snapshot_op_find(struct snapshot_op *o)
{
	struct error e = {0};
	struct snapshot *s = snapshot_find(o->op.ops->box, o->op.tenant, o->ref);
	if (s)
		return s;
	error_set(&e, ERROR_NOT_FOUND, "there is no such snapshot");
	op_fail(&o->op, OP_NO_SNAPSHOT, &e);
	return NULL;
}

static void snapshot_op_done(struct op *op, const struct snapshot *s, int64_t frozen_us)
{
	struct snapshot_record view;
	snapshot_view(s, &view);
	op_done(op, &(struct op_event){.kind = OP_DONE, .snapshot = &view, .frozen_us = frozen_us});
}

static struct snapshot_op *snapshot_op_new(
	const struct op_call *call, const struct op_type *type, const char *ref)
{
	struct sandbox *s;
	struct snapshot_op *o = (struct snapshot_op *)op_new(call, type, sizeof *o, &s);
	o->ref = ref;
	return o;
}

/* ---- create ---- */

static void snapshot_create_done(
	void *arg, struct snapshot *s, int64_t frozen_us, const struct error *e)
{
	struct op *op = arg;
	if (!op_awaited(op))
		return;
	if (s)
		snapshot_op_done(op, s, frozen_us);
	else
		op_fail(op, OP_ERROR, e);
}

static void snapshot_create_ask(struct op *op)
{
	struct snapshot_op *o = (struct snapshot_op *)op;
	struct error e = {0};
	struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	if (!s || snapshot_create(s, &o->spec, snapshot_create_done, op, &e) < 0)
		snapshot_create_done(op, NULL, 0, &e);
}

struct op *op_snapshot_create(const struct op_call *call, const struct snapshot_spec *spec)
{
	static const struct op_type type = {
		"snapshot.create", true, true, .ask = snapshot_create_ask, .withdraws = true};
	struct snapshot_op *o = snapshot_op_new(call, &type, NULL);
	o->spec = *spec;
	return &o->op;
}

/* ---- lists ---- */

static int snapshot_by_creation(const void *a, const void *b)
{
	const struct snapshot_record *x = a, *y = b;
	int r = (x->created_ms > y->created_ms) - (x->created_ms < y->created_ms);
	return r ? r : strcmp(x->id, y->id);
}

static int snapshot_by_name(const void *a, const void *b)
{
	const struct snapshot_record *x = a, *y = b;
	int r = strcmp(x->name, y->name);
	return r ? r : snapshot_by_creation(a, b);
}

static int snapshot_by_bytes(const void *a, const void *b)
{
	const struct snapshot_record *x = a, *y = b;
	int r = (x->bytes > y->bytes) - (x->bytes < y->bytes);
	return r ? r : snapshot_by_creation(a, b);
}

static int snapshot_by_files(const void *a, const void *b)
{
	const struct snapshot_record *x = a, *y = b;
	int r = (x->files > y->files) - (x->files < y->files);
	return r ? r : snapshot_by_creation(a, b);
}

static int (*const snapshot_orders[])(const void *a, const void *b) = {
	[SNAPSHOT_ORDER_CREATION] = snapshot_by_creation,
	[SNAPSHOT_ORDER_NAME] = snapshot_by_name,
	[SNAPSHOT_ORDER_BYTES] = snapshot_by_bytes,
	[SNAPSHOT_ORDER_FILES] = snapshot_by_files,
};

static bool snapshot_matches(const struct snapshot_record *view, const struct snapshot_filter *f)
{
	return (!f->name || strcmp(f->name, view->name) == 0) &&
	       (!f->tag || strcmp(f->tag, view->tag) == 0) &&
	       (!f->sandbox || strcmp(f->sandbox, view->sandbox) == 0);
}

static size_t snapshot_collect(struct snapshot_op *o, struct snapshot_record *views)
{
	const struct snapshot_filter *f = &o->filter;
	size_t count = 0;
	struct snapshot *s = snapshot_first(o->op.ops->box, o->op.tenant, f->after_ms, f->after_id);
	for (; s && count < SNAPSHOTS_PER_TENANT; s = snapshot_next(s)) {
		snapshot_view(s, &views[count]);
		count += snapshot_matches(&views[count], f);
	}
	return count;
}

/* False: the operation is gone. */
static bool snapshot_tell_row(struct op *op, const struct snapshot_record *view)
{
	return op_emit(op, &(struct op_event){.kind = OP_ROW, .snapshot = view});
}

static void snapshot_list_ask(struct op *op)
{
	struct snapshot_op *o = (struct snapshot_op *)op;
	const struct snapshot_filter *f = &o->filter;
	struct snapshot_record *views =
		scratch_alloc(&op->memory, SNAPSHOTS_PER_TENANT * sizeof *views);
	int64_t count = (int64_t)snapshot_collect(o, views);
	int64_t end = f->limit < count - f->offset ? f->offset + f->limit : count;
	qsort(views, (size_t)count, sizeof *views, snapshot_orders[f->order]);
	for (int64_t i = f->offset; i < end; i++)
		if (!snapshot_tell_row(op, &views[f->backwards ? count - 1 - i : i]))
			return;
	op_done(op, &(struct op_event){.kind = OP_DONE, .total = count, .more = end < count});
}

struct op *op_snapshot_list(const struct op_call *call, const struct snapshot_filter *filter)
{
	static const struct op_type type = {"snapshot.list", .ask = snapshot_list_ask};
	struct snapshot_op *o = snapshot_op_new(call, &type, NULL);
	o->filter = *filter;
	return &o->op;
}

static void snapshot_lineage_ask(struct op *op)
{
	struct snapshot_op *o = (struct snapshot_op *)op;
	struct snapshot_record view;
	int64_t total = 0;
	const struct snapshot *s = snapshot_op_find(o);
	if (!s)
		return;
	for (; s; s = snapshot_parent(s)) {
		snapshot_view(s, &view);
		if (total++ < o->filter.limit && !snapshot_tell_row(op, &view))
			return;
	}
	op_done(op, &(struct op_event){.kind = OP_DONE, .total = total});
}

struct op *op_snapshot_lineage(const struct op_call *call, const char *snapshot, int64_t limit)
{
	static const struct op_type type = {"snapshot.lineage", .ask = snapshot_lineage_ask};
	struct snapshot_op *o = snapshot_op_new(call, &type, snapshot);
	o->filter.limit = limit;
	return &o->op;
}

/* ---- one ---- */

static void snapshot_get_ask(struct op *op)
{
	const struct snapshot *s = snapshot_op_find((struct snapshot_op *)op);
	if (s)
		snapshot_op_done(op, s, 0);
}

struct op *op_snapshot_get(const struct op_call *call, const char *snapshot)
{
	static const struct op_type type = {"snapshot.get", .ask = snapshot_get_ask};
	return &snapshot_op_new(call, &type, snapshot)->op;
}

static void snapshot_retag_done(void *arg, const struct error *e)
{
	struct op *op = arg;
	struct snapshot_op *o = arg;
	struct error gone = {0};
	if (!op_awaited(op))
		return;
	struct snapshot *s = snapshot_find(op->ops->box, op->tenant, o->id);
	error_set(&gone, ERROR_NOT_FOUND, "the snapshot was deleted");
	if (e)
		op_fail(op, OP_ERROR, e);
	else if (!s)
		op_fail(op, OP_NO_SNAPSHOT, &gone);
	else
		snapshot_op_done(op, s, 0);
}

static void snapshot_retag_ask(struct op *op)
{
	struct snapshot_op *o = (struct snapshot_op *)op;
	struct error e = {0};
	struct snapshot_record view;
	struct snapshot *s = snapshot_op_find(o);
	if (!s)
		return;
	snapshot_view(s, &view);
	memcpy(o->id, view.id, ID_SIZE);
	op_await(op);
	if (snapshot_retag(s, o->tag, snapshot_retag_done, op, &e) < 0)
		snapshot_retag_done(op, &e);
}

struct op *op_snapshot_retag(const struct op_call *call, const char *snapshot, const char *tag)
{
	static const struct op_type type = {
		"snapshot.retag", true, true, .ask = snapshot_retag_ask};
	struct snapshot_op *o = snapshot_op_new(call, &type, snapshot);
	o->tag = tag;
	return &o->op;
}

static void snapshot_delete_ask(struct op *op)
{
	struct error e = {0};
	struct snapshot *s = snapshot_op_find((struct snapshot_op *)op);
	if (!s)
		return;
	op_await(op);
	if (snapshot_delete(s, op_called_back, op, &e) < 0)
		op_called_back(op, &e);
}

struct op *op_snapshot_delete(const struct op_call *call, const char *snapshot)
{
	static const struct op_type type = {
		"snapshot.delete", true, true, .ask = snapshot_delete_ask};
	return &snapshot_op_new(call, &type, snapshot)->op;
}
