/*
 * A new sandbox, and what is to be in it before its caller is told: each step finds it anew, since
 * meanwhile it may have gone.
 */
#include <string.h>

#include "base/cleanup.h"
#include "box/core/creation.h"
#include "box/disk/snapshot.h"
#include "box/template/template.h"
#include "op/life.h"
#include "op/op_core.h"

struct create_op {
	struct op op;
	struct op_create request; /* what it points at: until it is over */
	char id[ID_SIZE];         /* "": there is no sandbox */
	size_t step;
	struct file_call *file; /* of the step under way, if it can be cancelled */
	bool kept;              /* its caller is told of it */
};

enum create_result {
	CREATE_FAILED = -1,
	CREATE_GOES_ON,
	CREATE_WAITS
};

static void create_advance(struct create_op *c);

static void create_step_ended(struct create_op *c, const struct error *e)
{
	if (e)
		op_fail(&c->op, OP_ERROR, e);
	else
		create_advance(c);
}

/* ---- the steps ---- */

static void create_home_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void create_home_made(void *arg, const struct file_result *result, const struct error *e)
{
	struct create_op *c = arg;
	(void)result;
	c->file = NULL;
	create_step_ended(c, e);
}

static enum create_result create_home(struct create_op *c, struct sandbox *s, struct error *e)
{
	static const struct file_events events = {
		.entry = create_home_entry, .done = create_home_made};
	if (!c->request.home)
		return CREATE_GOES_ON;
	int r = op_make_home(s, c->request.home, &events, c, &c->file, e);
	return r < 0 ? CREATE_FAILED : CREATE_WAITS;
}

static void create_files_written(void *arg, const struct error *e)
{
	if (op_awaited(arg))
		create_step_ended(arg, e);
}

static enum create_result create_files(struct create_op *c, struct sandbox *s, struct error *e)
{
	(void)e;
	if (c->request.file_count == 0)
		return CREATE_GOES_ON;
	op_await(&c->op);
	files_write(s, &(struct files_owner){0}, c->request.files, c->request.file_count,
		create_files_written, c);
	return CREATE_WAITS;
}

static enum create_result op_create_command(struct create_op *c, struct sandbox *s, struct error *e)
{
	struct execution *x;
	struct execution_view view;
	if (!c->request.command)
		return CREATE_GOES_ON;
	if (execution_start(s, c->request.command, &x, e) < 0)
		return CREATE_FAILED;
	execution_view(x, &view);
	bool stays = op_emit(&c->op, &(struct op_event){.kind = OP_STARTED, .execution = &view});
	return stays ? CREATE_GOES_ON : CREATE_WAITS;
}

static enum create_result create_end(struct create_op *c, struct sandbox *s, struct error *e)
{
	struct sandbox_view view;
	(void)e;
	sandbox_view(s, &view);
	c->kept = true;
	op_done(&c->op, &(struct op_event){.kind = OP_DONE, .sandbox = &view});
	return CREATE_WAITS;
}

static enum create_result (*const create_steps[])(struct create_op *c, struct sandbox *s,
	struct error *e) = {create_home, create_files, op_create_command, create_end};

static void create_advance(struct create_op *c)
{
	struct error e;
	enum create_result r = CREATE_GOES_ON;
	struct sandbox *s = sandbox_find_any(c->op.ops->box, c->id);
	if (!s) {
		error_set(
			&e, ERROR_NOT_FOUND, "the sandbox was deleted while it was being created");
		r = CREATE_FAILED;
	}
	while (r == CREATE_GOES_ON)
		r = create_steps[c->step++](c, s, &e);
	if (r == CREATE_FAILED)
		op_fail(&c->op, OP_ERROR, &e);
}

/* ---- an operation ---- */

static void op_create_made(void *arg, struct sandbox *s, const struct error *e)
{
	struct create_op *c = arg;
	if (!s)
		c->id[0] = '\0';
	if (op_awaited(&c->op))
		create_step_ended(c, e);
}

/* Resolves the origin: a template or, if there is none of this name, a snapshot. */
static void create_settle_origin(struct create_op *c)
{
	struct error e;
	struct template *t;
	struct build *build;
	struct box *b = c->op.ops->box;
	struct sandbox_spec *spec = &c->request.spec;
	const char *origin = c->request.origin;
	if (!origin)
		return;
	if (template_resolve(b, spec->tenant, origin, &t, &build, &e) < 0 &&
		snapshot_find(b, spec->tenant, origin))
		spec->snapshot = origin;
	else
		spec->template_name = origin;
}

static void create_ask(struct op *op)
{
	struct create_op *c = (struct create_op *)op;
	struct sandbox_view view;
	struct error e;
	create_settle_origin(c);
	const struct sandbox *s =
		sandbox_create(op->ops->box, &c->request.spec, op_create_made, c, &e);
	if (!s) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	op_await(op);
	sandbox_view(s, &view);
	memcpy(c->id, view.id, ID_SIZE);
	op->summary.sandbox = c->id;
}

/* Withdraws a creation: a boot that has not begun does not begin. */
static void create_release(struct op *op, enum op_end end)
{
	struct create_op *c = (struct create_op *)op;
	struct sandbox *s = sandbox_find_any(op->ops->box, c->id);
	(void)end;
	if (c->file)
		file_cancel(take_ptr(c->file));
	if (s && !c->kept)
		sandbox_destroy(s, NULL, NULL);
}

struct op *op_create(const struct op_call *call, const struct op_create *request)
{
	static const struct op_type type = {
		.name = "create", .changes = true, .ask = create_ask, .release = create_release};
	struct sandbox *s;
	struct create_op *c = (struct create_op *)op_new(call, &type, sizeof *c, &s);
	c->request = *request;
	c->request.spec.tenant = c->op.tenant;
	return &c->op;
}
