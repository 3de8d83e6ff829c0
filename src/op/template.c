#include "op/template.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "box/template/build.h"
#include "box/disk/snapshot.h"
#include "op/op_core.h"

static struct template *template_named(const struct op *op, const char *name, struct error *e)
{
	struct template *t = template_find(op->ops->box, op->tenant, name);
	if (!t)
		error_set(e, ERROR_TEMPLATE_NOT_FOUND, "there is no template '%.128s'", name);
	return t;
}

static const char *template_asked(const struct op *op)
{
	return *(const char *const *)op_asked(op);
}

/* ---- questions ---- */

static void template_list_ask(struct op *op)
{
	struct template_view view;
	for (struct template *t = template_first(op->ops->box, op->tenant); t;
		t = template_next(t, op->tenant)) {
		autoscratch memory = {0};
		template_view(t, &memory, &view);
		if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .template = &view}))
			return;
	}
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

static void template_get_ask(struct op *op)
{
	struct error e;
	autoscratch memory = {0};
	struct template_view view;
	const struct template *t = template_named(op, template_asked(op), &e);
	if (!t) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	template_view(t, &memory, &view);
	op_done(op, &(struct op_event){.kind = OP_DONE, .template = &view});
}

static void template_resolve_ask(struct op *op)
{
	struct error e;
	autoscratch memory = {0};
	struct template_view view;
	struct build_view version;
	struct template *t;
	struct build *build;
	if (template_resolve(op->ops->box, op->tenant, template_asked(op), &t, &build, &e) < 0) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	template_view(t, &memory, &view);
	if (build)
		build_view(build, &memory, &version);
	if (op_emit(op, &(struct op_event){.kind = OP_ROW, .template = &view}))
		op_done(op, &(struct op_event){.kind = OP_DONE, .build = build ? &version : NULL});
}

struct op *op_template_list(const struct op_call *call)
{
	static const struct op_type type = {"template.list", .ask = template_list_ask};
	return op_ask(call, &type, NULL, 0);
}

struct op *op_template_get(const struct op_call *call, const char *name)
{
	static const struct op_type type = {"template.get", .ask = template_get_ask};
	return op_ask(call, &type, &name, sizeof name);
}

struct op *op_template_resolve(const struct op_call *call, const char *ref)
{
	static const struct op_type type = {"template.resolve", .ask = template_resolve_ask};
	return op_ask(call, &type, &ref, sizeof ref);
}

/* ---- deletion ---- */

static void template_delete_ask(struct op *op)
{
	struct error e;
	struct box *b = op->ops->box;
	const struct op_template_delete *request = op_asked(op);
	struct template *t = template_named(op, request->name, &e);
	struct snapshot *s =
		t || !request->or_snapshot ? NULL : snapshot_find(b, op->tenant, request->name);
	int r = -1;
	op_await(op);
	if (t)
		r = template_delete(t, op_called_back, op, &e);
	else if (s)
		r = snapshot_delete(s, op_called_back, op, &e);
	if (r < 0)
		op_called_back(op, &e);
}

struct op *op_template_delete(const struct op_call *call, const struct op_template_delete *request)
{
	static const struct op_type type = {"template.delete", .changes = true,
		.outlives_caller = true, .ask = template_delete_ask};
	return op_ask(call, &type, request, sizeof *request);
}

/* ---- tags ---- */

struct tags_op {
	struct op op;
	struct op_template_tags request;
	unsigned waiting; /* changes that are not stored yet; one more while they are made */
	struct error failure;
	char build[ID_SIZE]; /* that gets the tags */
};

static void tags_note_failure(struct tags_op *x, const struct error *e)
{
	if (x->failure.code == ERROR_NONE)
		x->failure = *e;
}

static void tags_end(struct tags_op *x)
{
	autoscratch memory = {0};
	struct build_view view;
	const struct build *build =
		x->build[0] ? build_find(x->op.ops->box, x->op.tenant, x->build) : NULL;
	if (x->build[0] && !build)
		error_set(&x->failure, ERROR_NOT_FOUND, "the build was deleted");
	if (x->failure.code != ERROR_NONE) {
		op_fail(&x->op, OP_ERROR, &x->failure);
		return;
	}
	if (build)
		build_view(build, &memory, &view);
	op_done(&x->op, &(struct op_event){.kind = OP_DONE, .build = build ? &view : NULL});
}

static void tags_stored(void *arg, const struct error *e)
{
	struct tags_op *x = arg;
	if (e)
		tags_note_failure(x, e);
	if (--x->waiting == 0 && op_awaited(&x->op))
		tags_end(x);
}

/* Counts a change that was begun; r and *e are what it said at once. */
static void tags_note_begun(struct tags_op *x, int r, const struct error *e)
{
	if (r < 0)
		tags_note_failure(x, e);
	else
		x->waiting++;
}

/* Makes the reference of a build: "id", "template" or "template:tag". */
static const char *tags_reference(
	const struct template *t, const char *target, struct scratch *memory)
{
	struct template_view view;
	if (target && id_is_valid(target))
		return target;
	template_view(t, memory, &view);
	size_t size = strlen(view.id) + 1 + (target ? strlen(target) : 0) + 1;
	char *ref = scratch_alloc(memory, size);
	snprintf(ref, size, "%s%s%s", view.id, target ? ":" : "", target ? target : "");
	return ref;
}

static struct build *tags_target(struct tags_op *x, struct error *e)
{
	autoscratch memory = {0};
	const struct op_template_tags *r = &x->request;
	struct template *t = NULL, *of;
	struct build *build;
	if (r->name && !(t = template_named(&x->op, r->name, e)))
		return NULL;
	const char *ref = t ? tags_reference(t, r->target, &memory) : r->target;
	if (template_resolve(x->op.ops->box, x->op.tenant, ref, &of, &build, e) < 0)
		return NULL;
	if (t && (!build || of != t))
		error_set_field(e, ERROR_NOT_FOUND, "build", "the template has no such build");
	else if (!build)
		error_set(e, ERROR_INVALID_REQUEST, "a built-in template has no tags");
	return t && of != t ? NULL : build;
}

static void tag_ask(struct op *op)
{
	struct tags_op *x = (struct tags_op *)op;
	struct error e;
	struct build *build = tags_target(x, &e);
	if (!build) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	autoscratch memory = {0};
	struct build_view view;
	build_view(build, &memory, &view);
	memcpy(x->build, view.id, ID_SIZE);
	x->waiting = 1;
	op_await(op);
	for (const char *const *tag = x->request.tags; *tag; tag++)
		tags_note_begun(x, template_tag(build, *tag, tags_stored, x, &e), &e);
	tags_stored(x, NULL);
}

static void untag_ask(struct op *op)
{
	struct tags_op *x = (struct tags_op *)op;
	struct error e;
	struct template *t = template_named(op, x->request.name, &e);
	if (!t) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	x->waiting = 1;
	op_await(op);
	for (const char *const *tag = x->request.tags; *tag; tag++)
		tags_note_begun(x, template_untag(t, *tag, tags_stored, x, &e), &e);
	tags_stored(x, NULL);
}

static struct op *tags_new(const struct op_call *call, const struct op_type *type,
	const struct op_template_tags *request)
{
	struct sandbox *s;
	struct tags_op *x = (struct tags_op *)op_new(call, type, sizeof *x, &s);
	x->request = *request;
	return &x->op;
}

struct op *op_template_tag(const struct op_call *call, const struct op_template_tags *request)
{
	static const struct op_type type = {
		"template.tag", .changes = true, .outlives_caller = true, .ask = tag_ask};
	return tags_new(call, &type, request);
}

struct op *op_template_untag(const struct op_call *call, const struct op_template_tags *request)
{
	static const struct op_type type = {
		"template.untag", .changes = true, .outlives_caller = true, .ask = untag_ask};
	return tags_new(call, &type, request);
}
