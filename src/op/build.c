/* Builds, from their making to their log. Archives are in build_input.c. */
#include "op/build.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "box/template/build.h"
#include "op/op_build.h"
#include "op/op_core.h"

static struct build *build_of_ref(
	const struct op *op, const struct op_build_ref *ref, struct error *e)
{
	autoscratch memory = {0};
	struct build_view view;
	struct build *build = build_find(op->ops->box, op->tenant, ref->build);
	if (build && !ref->template_name)
		return build;
	if (build) {
		build_view(build, &memory, &view);
		if (strcmp(view.template_id, ref->template_name) == 0 ||
			strcmp(view.name, ref->template_name) == 0)
			return build;
	}
	if (ref->template_name)
		error_set(e, ERROR_NOT_FOUND, "template '%.128s' has no such build",
			ref->template_name);
	else
		error_set(e, ERROR_NOT_FOUND, "there is no such build");
	return NULL;
}

static void build_ignore_change(void *arg)
{
	(void)arg;
}

void op_build_done(struct op *op, struct build *build)
{
	autoscratch memory = {0};
	struct build_view view;
	struct build_watcher hold = {.changed = build_ignore_change};
	build_watch(build, &hold);
	build_view(build, &memory, &view);
	op_done(op, &(struct op_event){.kind = OP_DONE, .build = &view});
	build_unwatch(build, &hold);
}

/* ---- making and starting ---- */

struct build_op {
	struct op op;
	struct build_new what;
	struct op_build_ref ref;
	const struct build_spec *spec; /* NULL: it is only made */
	char id[ID_SIZE];
};

static void build_stored(void *arg)
{
	struct build_op *x = arg;
	struct error e;
	if (!op_awaited(&x->op))
		return;
	struct build *build = build_find(x->op.ops->box, x->op.tenant, x->id);
	if (build) {
		op_build_done(&x->op, build);
		return;
	}
	error_set(&e, ERROR_NOT_FOUND, "the build was deleted");
	op_fail(&x->op, OP_ERROR, &e);
}

static void build_await_store(struct build_op *x, struct build *build)
{
	autoscratch memory = {0};
	struct build_view view;
	build_view(build, &memory, &view);
	memcpy(x->id, view.id, ID_SIZE);
	op_await(&x->op);
	build_when_stored(build, build_stored, x);
}

/* Cancels a build whose caller has left: no client knows its id. */
static void op_build_made(void *arg, struct build *build, const struct error *e)
{
	struct build_op *x = arg;
	struct error wrong;
	if (build && x->op.gone)
		build_discard(build);
	if (!op_awaited(&x->op))
		return;
	if (build && x->spec && build_start(build, x->spec, &wrong) < 0) {
		build_discard(build);
		e = &wrong;
	}
	if (e)
		op_fail(&x->op, OP_ERROR, e);
	else if (x->spec)
		build_await_store(x, build);
	else
		op_build_done(&x->op, build);
}

static void build_create_ask(struct op *op)
{
	struct build_op *x = (struct build_op *)op;
	struct error e;
	x->what.tenant = op->tenant;
	op_await(op);
	if (build_create(op->ops->box, &x->what, op_build_made, x, &e) < 0)
		op_called_back(op, &e);
}

static void build_start_ask(struct op *op)
{
	struct build_op *x = (struct build_op *)op;
	struct error e;
	struct build *build = build_of_ref(op, &x->ref, &e);
	if (build && build_start(build, x->spec, &e) == 0)
		build_await_store(x, build);
	else
		op_fail(op, OP_ERROR, &e);
}

static struct build_op *build_op_new(
	const struct op_call *call, const struct op_type *type, const struct build_spec *spec)
{
	struct sandbox *s;
	struct build_op *x = (struct build_op *)op_new(call, type, sizeof *x, &s);
	x->spec = spec;
	return x;
}

struct op *op_build_create(
	const struct op_call *call, const struct build_new *what, const struct build_spec *spec)
{
	static const struct op_type type = {
		"build.create", .changes = true, .outlives_caller = true, .ask = build_create_ask};
	struct build_op *x = build_op_new(call, &type, spec);
	x->what = *what;
	return &x->op;
}

struct op *op_build_start(
	const struct op_call *call, const struct op_build_ref *ref, const struct build_spec *spec)
{
	static const struct op_type type = {
		"build.start", .changes = true, .outlives_caller = true, .ask = build_start_ask};
	struct build_op *x = build_op_new(call, &type, spec);
	x->ref = *ref;
	return &x->op;
}

/* ---- questions ---- */

static void build_get_ask(struct op *op)
{
	struct error e;
	struct build *build = build_of_ref(op, op_asked(op), &e);
	if (build)
		op_build_done(op, build);
	else
		op_fail(op, OP_ERROR, &e);
}

static void build_cancel_ask(struct op *op)
{
	struct error e;
	struct build *build = build_of_ref(op, op_asked(op), &e);
	if (!build) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	build_cancel(build);
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_build_get(const struct op_call *call, const struct op_build_ref *ref)
{
	static const struct op_type type = {"build.get", .ask = build_get_ask};
	return op_ask(call, &type, ref, sizeof *ref);
}

struct op *op_build_cancel(const struct op_call *call, const struct op_build_ref *ref)
{
	static const struct op_type type = {
		"build.cancel", .changes = true, .ask = build_cancel_ask};
	return op_ask(call, &type, ref, sizeof *ref);
}

/* ---- the log ---- */

#define LOG_BATCH 100

struct log_op {
	struct op op;
	struct op_build_log request;
	struct build *build; /* NULL: not found yet */
	struct build_watcher watcher;
	struct scratch memory; /* of the messages in the batch */
	struct build_log_entry batch[LOG_BATCH];
	size_t count, told; /* of the batch */
};

static void log_keep(void *arg, const struct build_log_entry *entry)
{
	struct log_op *l = arg;
	struct build_log_entry *copy = &l->batch[l->count++];
	size_t size = strlen(entry->message) + 1;
	*copy = *entry;
	copy->message = memcpy(scratch_alloc(&l->memory, size), entry->message, size);
}

/* False: there is no further entry now. */
static bool log_fetch(struct log_op *l)
{
	size_t left = l->request.follow ? LOG_BATCH : l->request.limit;
	size_t max = left < LOG_BATCH ? left : LOG_BATCH;
	scratch_finish(&l->memory);
	l->count = l->told = 0;
	build_log_read(l->build, l->request.from, max, log_keep, l);
	l->request.from += l->count;
	if (!l->request.follow)
		l->request.limit -= l->count;
	return l->count > 0;
}

static bool log_is_over(const struct log_op *l)
{
	autoscratch memory = {0};
	struct build_view view;
	if (!l->request.follow)
		return true;
	build_view(l->build, &memory, &view);
	return view.status >= BUILD_READY;
}

/* Ends each batch with OP_IDLE, so that a collecting caller keeps no more than one. */
static void log_tell(struct log_op *l)
{
	struct op *op = &l->op;
	while (!op->paused) {
		if (l->told < l->count) {
			const struct build_log_entry *entry = &l->batch[l->told++];
			if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .log = entry}))
				return;
			continue;
		}
		bool had_entries = l->count > 0, has_entries = log_fetch(l);
		if (!has_entries && log_is_over(l)) {
			op_build_done(op, l->build);
			return;
		}
		if (had_entries || !has_entries)
			if (!op_emit(op, &(struct op_event){.kind = OP_IDLE}))
				return;
		if (!has_entries)
			return;
	}
}

static void log_changed(void *arg)
{
	log_tell(arg);
}

static void log_resume(struct op *op)
{
	struct log_op *l = (struct log_op *)op;
	struct error e;
	if (!l->build) {
		l->build = build_of_ref(op, &l->request.ref, &e);
		if (!l->build) {
			op_fail(op, OP_ERROR, &e);
			return;
		}
		l->watcher = (struct build_watcher){.changed = log_changed, .arg = l};
		build_watch(l->build, &l->watcher);
	}
	log_tell(l);
}

static void log_release(struct op *op, enum op_end end)
{
	struct log_op *l = (struct log_op *)op;
	(void)end;
	scratch_finish(&l->memory);
	if (l->build)
		build_unwatch(l->build, &l->watcher);
}

struct op *op_build_log(const struct op_call *call, const struct op_build_log *request)
{
	static const struct op_type type = {
		"build.log", .resume = log_resume, .release = log_release};
	struct sandbox *s;
	struct log_op *l = (struct log_op *)op_new(call, &type, sizeof *l, &s);
	l->request = *request;
	return &l->op;
}
