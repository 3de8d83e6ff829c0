/* Checkpoints, and what a sandbox goes back to. */
#include "op/checkpoints.h"

#include "box/disk/checkpoint.h"
#include "op/op_core.h"

static struct op *checkpoint_ask(
	const struct op_call *call, const struct op_type *type, const char *text)
{
	return op_ask(call, type, &text, sizeof text);
}

/* The name or reference of the request. */
static const char *checkpoint_asked_text(const struct op *op)
{
	return *(const char *const *)op_asked(op);
}

/* NULL: the operation has failed, and is gone. */
static struct checkpoint *checkpoint_asked(struct op *op)
{
	struct error e = {0};
	struct sandbox *s = op_sandbox(op, &e);
	struct checkpoint *c = s ? checkpoint_find(s, checkpoint_asked_text(op)) : NULL;
	if (c)
		return c;
	if (s)
		error_set(&e, ERROR_NOT_FOUND, "there is no such checkpoint");
	op_fail(op, s ? OP_ERROR : OP_NO_SANDBOX, &e);
	return NULL;
}

static void checkpoint_op_done(struct op *op, const struct checkpoint *c, int64_t frozen_us)
{
	struct checkpoint_view view;
	checkpoint_view(c, &view);
	op_done(op,
		&(struct op_event){.kind = OP_DONE, .checkpoint = &view, .frozen_us = frozen_us});
}

/* ---- create ---- */

static void checkpoint_create_done(
	void *arg, struct checkpoint *c, int64_t frozen_us, const struct error *e)
{
	struct op *op = arg;
	if (!op_awaited(op))
		return;
	if (c)
		checkpoint_op_done(op, c, frozen_us);
	else
		op_fail(op, OP_ERROR, e);
}

static void checkpoint_create_ask(struct op *op)
{
	struct error e = {0};
	struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	if (!s ||
		checkpoint_create(s, checkpoint_asked_text(op), checkpoint_create_done, op, &e) < 0)
		checkpoint_create_done(op, NULL, 0, &e);
}

struct op *op_checkpoint_create(const struct op_call *call, const char *name)
{
	static const struct op_type type = {
		"checkpoint.create", true, true, .ask = checkpoint_create_ask, .withdraws = true};
	return checkpoint_ask(call, &type, name);
}

/* ---- list, get ---- */

static void checkpoint_list_ask(struct op *op)
{
	struct error e = {0};
	struct checkpoint_view view;
	struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	for (struct checkpoint *c = checkpoint_first(s); c; c = checkpoint_next(c)) {
		checkpoint_view(c, &view);
		if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .checkpoint = &view}))
			return;
	}
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_checkpoint_list(const struct op_call *call)
{
	static const struct op_type type = {"checkpoint.list", .ask = checkpoint_list_ask};
	return op_ask(call, &type, NULL, 0);
}

static void checkpoint_get_ask(struct op *op)
{
	const struct checkpoint *c = checkpoint_asked(op);
	if (c)
		checkpoint_op_done(op, c, 0);
}

struct op *op_checkpoint_get(const struct op_call *call, const char *checkpoint)
{
	static const struct op_type type = {"checkpoint.get", .ask = checkpoint_get_ask};
	return checkpoint_ask(call, &type, checkpoint);
}

/* ---- restore, discard, delete ---- */

static void checkpoint_disk_swapped(void *arg, const struct error *e)
{
	struct op *op = arg;
	struct error gone = {0};
	struct sandbox_view view;
	if (!op_awaited(op))
		return;
	struct sandbox *s = op_sandbox(op, &gone);
	error_set(&gone, ERROR_NOT_FOUND, "the sandbox was deleted");
	if (e || !s) {
		op_fail(op, OP_ERROR, e ? e : &gone);
		return;
	}
	sandbox_view(s, &view);
	op_done(op, &(struct op_event){.kind = OP_DONE, .sandbox = &view});
}

static void checkpoint_restore_ask(struct op *op)
{
	struct error e = {0};
	struct checkpoint *c = checkpoint_asked(op);
	if (!c)
		return;
	op_await(op);
	if (checkpoint_restore(c, checkpoint_disk_swapped, op, &e) < 0)
		checkpoint_disk_swapped(op, &e);
}

struct op *op_checkpoint_restore(const struct op_call *call, const char *checkpoint)
{
	static const struct op_type type = {
		"checkpoint.restore", true, true, .ask = checkpoint_restore_ask};
	return checkpoint_ask(call, &type, checkpoint);
}

static void discard_ask(struct op *op)
{
	struct error e = {0};
	struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	if (s)
		sandbox_discard(s, checkpoint_disk_swapped, op);
	else
		checkpoint_disk_swapped(op, &e);
}

struct op *op_discard(const struct op_call *call)
{
	static const struct op_type type = {"sandbox.discard", true, true, .ask = discard_ask};
	return op_ask(call, &type, NULL, 0);
}

static void checkpoint_delete_ask(struct op *op)
{
	struct checkpoint *c = checkpoint_asked(op);
	if (!c)
		return;
	op_await(op);
	checkpoint_delete(c, op_called_back, op);
}

struct op *op_checkpoint_delete(const struct op_call *call, const char *checkpoint)
{
	static const struct op_type type = {
		"checkpoint.delete", true, true, .ask = checkpoint_delete_ask};
	return checkpoint_ask(call, &type, checkpoint);
}
