/*
 * Sandboxes and snapshots as one JSON object. Two walks over the disk: what was deleted, and then
 * everything that is there.
 */
#include "image/portable.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "op/disks.h"
#include "op/walk.h"

struct portable_op {
	struct walk_op walk;
	const char *root, *ref; /* the request's: until it has begun; ref NULL: the sandbox */
	char snapshot[ID_SIZE]; /* its id; "": it is the sandbox */
	struct portable_writer *writer;
	struct buf out; /* the writer's */
};

/* Begins one of the walks; what it is about may have been deleted since the first. */
static int portable_walk(struct portable_op *p, enum diff_form form,
	const struct comparison_events *events, struct error *e)
{
	struct op *op = &p->walk.op;
	struct snapshot *snapshot =
		p->snapshot[0] ? snapshot_find(op->ops->box, op->tenant, p->snapshot) : NULL;
	struct sandbox *s = p->snapshot[0] ? NULL : op_sandbox(op, e);
	if (!s && !snapshot)
		return error_set(e, ERROR_NOT_FOUND, "it was deleted meanwhile");
	p->walk.comparison = s ? comparison_begin_whole(s, form, events, p, e)
			       : comparison_begin_snapshot(snapshot, form, events, p, e);
	return p->walk.comparison ? 0 : -1;
}

/* ---- what is there ---- */

static void portable_data(void *arg, const char *bytes, size_t len)
{
	struct portable_op *p = arg;
	struct error e;
	if (portable_write(p->writer, bytes, len, &e) == 0) {
		walk_emit_bytes(&p->walk, &p->out);
		return;
	}
	comparison_cancel(p->walk.comparison);
	op_walk_finish(&p->walk, false, &e);
}

static void portable_written(void *arg, bool truncated, const struct error *e)
{
	struct portable_op *p = arg;
	struct error bad;
	p->walk.comparison = NULL;
	if (!e && truncated)
		error_set(&bad, ERROR_NOT_SUPPORTED, "some of the directories are too deep");
	if (!e && (truncated || portable_write_end(p->writer, &bad) < 0))
		e = &bad;
	if (e || walk_emit_bytes(&p->walk, &p->out))
		op_walk_finish(&p->walk, false, e);
}

/* ---- what is not ---- */

static void portable_change(void *arg, const struct disk_change *c)
{
	struct portable_op *p = arg;
	bool replaced = c->kind == DIFF_CHANGED && (c->old_mode & S_IFMT) != (c->new_mode & S_IFMT);
	if (c->kind != DIFF_DELETED && !replaced)
		return;
	portable_write_deleted(p->writer, c->path);
	walk_emit_bytes(&p->walk, &p->out);
}

static void portable_looked(void *arg, bool truncated, const struct error *e)
{
	static const struct comparison_events events = {
		.data = portable_data, .done = portable_written};
	struct portable_op *p = arg;
	struct error bad = {0};
	(void)truncated; /* so will be the next, which says so */
	p->walk.comparison = NULL;
	if (!e && portable_walk(p, DIFF_TAR, &events, &bad) < 0)
		e = &bad;
	if (e)
		op_walk_finish(&p->walk, false, e);
}

/* ---- the begin ---- */

static int portable_head_of_sandbox(struct portable_op *p, struct error *e)
{
	struct sandbox_view view;
	struct sandbox *s = op_sandbox(&p->walk.op, e);
	if (!s)
		return -1;
	sandbox_view(s, &view);
	p->writer = portable_writer_new(&(struct portable_head){view.template_name, p->root,
						view.env.data, view.env.len, clock_wall_ms()},
		&p->out);
	return 0;
}

static int portable_head_of_snapshot(struct portable_op *p, struct error *e)
{
	struct snapshot_record view;
	struct snapshot *s = snapshot_find(p->walk.op.ops->box, p->walk.op.tenant, p->ref);
	if (!s)
		return error_set(e, ERROR_NOT_FOUND, "there is no such snapshot");
	snapshot_view(s, &view);
	memcpy(p->snapshot, view.id, ID_SIZE);
	p->writer = portable_writer_new(
		&(struct portable_head){view.template_name, "/", "", 0, view.created_ms}, &p->out);
	return 0;
}

static int portable_begin(struct walk_op *w, enum op_reason *reason, struct error *e)
{
	static const struct comparison_events look = {
		.change = portable_change, .done = portable_looked};
	struct portable_op *p = (struct portable_op *)w;
	if ((p->ref ? portable_head_of_snapshot(p, e) : portable_head_of_sandbox(p, e)) < 0) {
		*reason = p->ref ? OP_NO_SNAPSHOT : OP_NO_SANDBOX;
		return -1;
	}
	return portable_walk(p, DIFF_RECORDS, &look, e);
}

static void portable_release(struct op *op, enum op_end end)
{
	struct portable_op *p = (struct portable_op *)op;
	walk_release(op, end);
	portable_writer_free(p->writer);
	buf_finish(&p->out);
}

static struct op *portable_new(const struct op_call *call, const char *root, const char *ref)
{
	static const struct op_type type = {
		"sandbox.export", .resume = op_walk_resume, .release = portable_release};
	struct sandbox *s;
	struct portable_op *p = (struct portable_op *)op_new(call, &type, sizeof *p, &s);
	p->walk.begin = portable_begin;
	p->root = root;
	p->ref = ref;
	return &p->walk.op;
}

struct op *op_portable_export(const struct op_call *call, const char *root)
{
	return portable_new(call, root, NULL);
}

struct op *op_portable_export_snapshot(const struct op_call *call, const char *snapshot)
{
	return portable_new(call, NULL, snapshot);
}
