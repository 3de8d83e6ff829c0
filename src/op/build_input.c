/* Archives on their way into builds: images that become templates, and files for COPY. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "box/template/build.h"
#include "op/build.h"
#include "op/op_build.h"
#include "op/op_core.h"

/* ---- imports ---- */

struct import_op {
	struct op op;
	struct build_new what;
	struct import_spec spec;
	struct build *build; /* NULL: it is not made yet */
	struct build_watcher watcher;
	struct buf early; /* what was put before that: one piece, because there is no room */
	bool ended, over; /* the input; the build */
};

static void import_flush(struct import_op *x)
{
	autobuf early = buf_take(&x->early);
	if (early.len > 0)
		build_import_data(x->build, early.data, early.len);
	if (x->ended)
		build_import_end(x->build);
}

/* ROOM is told even to a paused caller: it concerns the other direction. */
static void build_input_import_has_room(void *arg)
{
	struct import_op *x = arg;
	x->op.event(x->op.arg, &(struct op_event){.kind = OP_ROOM});
}

static void import_changed(void *arg)
{
	struct import_op *x = arg;
	autoscratch memory = {0};
	struct build_view view;
	struct error e;
	build_view(x->build, &memory, &view);
	if (view.status < BUILD_READY)
		return;
	x->over = true;
	if (view.status == BUILD_READY) {
		op_build_done(&x->op, x->build);
		return;
	}
	error_set(&e, view.status == BUILD_CANCELLED ? ERROR_BUILD_FAILED : view.code, "%s",
		view.reason);
	op_fail(&x->op, OP_ERROR, &e);
}

static void import_made(void *arg, struct build *build, const struct error *e)
{
	struct import_op *x = arg;
	struct error wrong;
	if (build && x->op.gone)
		build_discard(build);
	if (!op_awaited(&x->op))
		return;
	if (build && build_import(build, &x->spec, build_input_import_has_room, x, &wrong) < 0) {
		build_cancel(build);
		e = &wrong;
	}
	if (e) {
		op_fail(&x->op, OP_ERROR, e);
		return;
	}
	x->build = build;
	x->watcher = (struct build_watcher){.changed = import_changed, .arg = x};
	build_watch(build, &x->watcher);
	import_flush(x);
	build_input_import_has_room(x);
}

static void import_ask(struct op *op)
{
	struct import_op *x = (struct import_op *)op;
	struct error e;
	x->what.tenant = op->tenant;
	op_await(op);
	if (build_create(op->ops->box, &x->what, import_made, x, &e) < 0)
		op_called_back(op, &e);
}

static void import_put(struct op *op, const struct op_item *item)
{
	struct import_op *x = (struct import_op *)op;
	if (x->over)
		return;
	if (item->kind == OP_ITEM_DATA && x->build)
		build_import_data(x->build, item->bytes.data, item->bytes.len);
	else if (item->kind == OP_ITEM_DATA)
		buf_append(&x->early, item->bytes.data, item->bytes.len);
	if (item->kind != OP_ITEM_END)
		return;
	x->ended = true;
	if (x->build)
		build_import_end(x->build);
}

static size_t import_room(const struct op *op)
{
	const struct import_op *x = (const struct import_op *)op;
	if (x->over)
		return SIZE_MAX;
	return x->build ? build_import_room(x->build) : 0;
}

static void import_release(struct op *op, enum op_end end)
{
	struct import_op *x = (struct import_op *)op;
	(void)end;
	buf_finish(&x->early);
	if (!x->build)
		return;
	build_cancel(x->build); /* unless it has ended */
	build_unwatch(x->build, &x->watcher);
}

struct op *op_build_import(
	const struct op_call *call, const struct build_new *what, const struct import_spec *spec)
{
	static const struct op_type type = {"build.import", .changes = true, .ask = import_ask,
		.release = import_release, .put = import_put, .room = import_room};
	struct sandbox *s;
	struct import_op *x = (struct import_op *)op_new(call, &type, sizeof *x, &s);
	x->what = *what;
	x->spec = *spec;
	return &x->op;
}

/* ---- files for COPY ---- */

static void build_files_find_ask(struct op *op)
{
	const struct op_build_files *request = op_asked(op);
	struct box *b = op->ops->box;
	struct error e = {0};
	if (request->template_name && !template_find(b, op->tenant, request->template_name))
		error_set(&e, ERROR_TEMPLATE_NOT_FOUND, "there is no template '%.128s'",
			request->template_name);
	else if (!build_archive_exists(b, op->tenant, request->hash))
		error_set(&e, ERROR_NOT_FOUND, "there is no such archive");
	if (e.code != ERROR_NONE)
		op_fail(op, OP_ERROR, &e);
	else
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_build_files_find(const struct op_call *call, const struct op_build_files *request)
{
	static const struct op_type type = {"build.files.find", .ask = build_files_find_ask};
	return op_ask(call, &type, request, sizeof *request);
}

struct store_op {
	struct op op;
	struct build_archive *upload; /* NULL: it did not begin, or has ended */
};

static void store_has_room(void *arg)
{
	struct store_op *x = arg;
	x->op.event(x->op.arg, &(struct op_event){.kind = OP_ROOM});
}

static void store_done(void *arg, const struct error *e)
{
	struct store_op *x = arg;
	x->upload = NULL;
	if (e)
		op_fail(&x->op, OP_ERROR, e);
	else
		op_done(&x->op, &(struct op_event){.kind = OP_DONE});
}

static void build_input_store_put(struct op *op, const struct op_item *item)
{
	struct store_op *x = (struct store_op *)op;
	if (item->kind == OP_ITEM_DATA)
		build_archive_write(x->upload, item->bytes.data, item->bytes.len);
	else if (item->kind == OP_ITEM_END)
		build_archive_end(x->upload);
}

static size_t store_room(const struct op *op)
{
	return build_archive_room(((const struct store_op *)op)->upload);
}

static void store_resume(struct op *op)
{
	(void)op;
}

static void store_release(struct op *op, enum op_end end)
{
	struct store_op *x = (struct store_op *)op;
	(void)end;
	if (x->upload)
		build_archive_cancel(take_ptr(x->upload));
}

struct op *op_build_files_store(const struct op_call *call, const struct op_build_files *request)
{
	static const struct op_type type = {"build.files.store", .changes = true,
		.resume = store_resume, .release = store_release, .put = build_input_store_put,
		.room = store_room};
	static const struct build_archive_events events = {store_has_room, store_done};
	struct sandbox *s;
	struct store_op *x = (struct store_op *)op_new(call, &type, sizeof *x, &s);
	const struct build_archive_spec spec = {
		call->tenant, request->hash, request->verify, request->announced};
	if (!x->op.failed)
		x->op.failed = build_archive_begin(call->ops->box, &spec, &events, x, &x->upload,
				       &x->op.failure) < 0;
	return &x->op;
}
