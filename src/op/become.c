/*
 * A sandbox becomes a snapshot, with packages if it is to have some. Packages are installed before
 * a sandbox is made, so they need a second sandbox: the first one's home is copied into it, from
 * init to init, and the snapshot is made of that one.
 *
 * The operation is carried through: it awaits its last callback from the beginning on. A sandbox
 * that could not become a snapshot stays, and can be asked again.
 */
#include <string.h>

#include "base/cleanup.h"
#include "box/core/creation.h"
#include "box/disk/snapshot.h"
#include "op/op_core.h"
#include "op/snapshots.h"

struct become_op {
	struct op op;
	struct op_become_snapshot request;
	char furnished[ID_SIZE]; /* the second sandbox; "": there is none */
	struct file_call *making, *packing, *unpacking;
};

/* ---- the end ---- */

static void become_destroy(struct become_op *b, const char *id)
{
	struct sandbox *s = sandbox_find_any(b->op.ops->box, id);
	if (s)
		sandbox_destroy(s, NULL, NULL);
}

static void become_fail(struct become_op *b, enum op_reason reason, const struct error *e)
{
	if (b->making)
		file_cancel(take_ptr(b->making));
	if (b->packing)
		file_cancel(take_ptr(b->packing));
	if (b->unpacking)
		file_cancel(take_ptr(b->unpacking));
	become_destroy(b, b->furnished);
	if (op_awaited(&b->op))
		op_fail(&b->op, reason, e);
}

static void become_fail_ended(struct become_op *b)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "the sandbox has ended meanwhile");
	become_fail(b, OP_SANDBOX_ENDED, &e);
}

static void become_snapshot_made(
	void *arg, struct snapshot *s, int64_t frozen_us, const struct error *e)
{
	struct become_op *b = arg;
	struct snapshot_record view;
	if (!s) {
		become_fail(b, OP_ERROR, e);
		return;
	}
	snapshot_view(s, &view);
	become_destroy(b, b->op.sandbox);
	become_destroy(b, b->furnished);
	if (op_awaited(&b->op))
		op_done(&b->op,
			&(struct op_event){
				.kind = OP_DONE, .snapshot = &view, .frozen_us = frozen_us});
}

static void become_make_snapshot(struct become_op *b)
{
	struct error e;
	const char *id = b->furnished[0] ? b->furnished : b->op.sandbox;
	struct sandbox *s = sandbox_find_any(b->op.ops->box, id);
	if (!s)
		become_fail_ended(b);
	else if (snapshot_create(s, &b->request.spec, become_snapshot_made, b, &e) < 0)
		become_fail(b, OP_ERROR, &e);
}

/* ---- from one sandbox to the other ---- */

static void become_pack_content(void *arg, uint64_t length, uint64_t offset)
{
	(void)arg;
	(void)length;
	(void)offset;
}

static void become_pack_data(void *arg, struct buf *bytes)
{
	struct become_op *b = arg;
	file_put_data(b->unpacking, bytes->data, bytes->len);
	if (file_room(b->unpacking) == 0)
		file_pause(b->packing);
}

static void become_packed(void *arg, const struct file_result *result, const struct error *e)
{
	struct become_op *b = arg;
	(void)result;
	b->packing = NULL;
	if (e)
		become_fail(b, OP_ERROR, e);
	else
		file_put_end(b->unpacking);
}

static void become_unpack_has_room(void *arg)
{
	struct become_op *b = arg;
	if (b->packing)
		file_resume(b->packing);
}

static void become_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void become_unpacked(void *arg, const struct file_result *result, const struct error *e)
{
	struct become_op *b = arg;
	(void)result;
	b->unpacking = NULL;
	if (e)
		become_fail(b, OP_ERROR, e);
	else
		become_make_snapshot(b);
}

static void become_copy_home(struct become_op *b)
{
	static const struct file_events packing = {
		.content = become_pack_content, .data = become_pack_data, .done = become_packed};
	static const struct file_events unpacking = {
		.entry = become_entry, .room = become_unpack_has_room, .done = become_unpacked};
	struct file_request pack = {.fixed.op = FILE_PACK}, unpack = {.fixed.op = FILE_UNPACK};
	struct error e;
	struct sandbox *from = sandbox_find_any(b->op.ops->box, b->op.sandbox);
	struct sandbox *to = sandbox_find_any(b->op.ops->box, b->furnished);
	pack.text[FILE_PATH] = unpack.text[FILE_PATH] = b->request.home;
	if (!from || !to)
		become_fail_ended(b);
	else if (file_begin(to, NULL, &unpack, &unpacking, b, &b->unpacking, &e) < 0 ||
		 file_begin(from, NULL, &pack, &packing, b, &b->packing, &e) < 0)
		become_fail(b, OP_ERROR, &e);
}

/* ---- the second sandbox ---- */

static void become_home_made(void *arg, const struct file_result *result, const struct error *e)
{
	struct become_op *b = arg;
	(void)result;
	b->making = NULL;
	if (e)
		become_fail(b, OP_ERROR, e);
	else
		become_copy_home(b);
}

static void become_furnished(void *arg, struct sandbox *s, const struct error *e)
{
	static const struct file_events events = {.entry = become_entry, .done = become_home_made};
	struct become_op *b = arg;
	struct sandbox_view view;
	struct error failure;
	if (!s) {
		become_fail(b, OP_ERROR, e);
		return;
	}
	sandbox_view(s, &view);
	memcpy(b->furnished, view.id, ID_SIZE);
	if (op_make_home(s, b->request.home, &events, b, &b->making, &failure) < 0)
		become_fail(b, OP_ERROR, &failure);
}

static void become_furnish(struct become_op *b, const struct sandbox *first)
{
	struct sandbox_view view;
	struct error e;
	sandbox_view(first, &view);
	const struct sandbox_spec spec = {.tenant = view.tenant,
		.template_name = view.template_name,
		.lease_ms = b->request.lease_ms,
		.on_lease = EXPIRY_DESTROY,
		.dependencies = b->request.dependencies,
		.packages = b->request.packages};
	if (!sandbox_create(b->op.ops->box, &spec, become_furnished, b, &e))
		become_fail(b, OP_ERROR, &e);
}

static void become_ask(struct op *op)
{
	struct become_op *b = (struct become_op *)op;
	struct error e;
	const struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	if (!s)
		become_fail_ended(b);
	else if (b->request.dependencies || b->request.packages)
		become_furnish(b, s);
	else
		become_make_snapshot(b);
}

struct op *op_become_snapshot(const struct op_call *call, const struct op_become_snapshot *request)
{
	static const struct op_type type = {"snapshot.become", true, true, .ask = become_ask};
	struct sandbox *s;
	struct become_op *b = (struct become_op *)op_new(call, &type, sizeof *b, &s);
	b->request = *request;
	return &b->op;
}
