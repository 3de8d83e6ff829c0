/*
 * Writing to a process's stdin, as it makes room. At most one piece of data waits here: callers
 * check op_room before they put. Data that is acknowledged with `until_taken` is in the process's
 * pipe, and is not lost with this server.
 */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "op/op_core.h"
#include "op/process.h"

#define INPUT_ROOM (64u * 1024)

struct input_op {
	struct op op;
	struct op_input request;
	struct op_search search;
	char *name; /* what the search's reference points at */
	struct execution *execution;
	struct execution_watcher watcher;
	struct buf waiting;
	uint64_t skip; /* bytes of the data that the process has */
	bool sought, complete;
};

static void input_tell(struct input_op *in)
{
	struct execution_view view;
	execution_view(in->execution, &view);
	if (op_emit(&in->op, &(struct op_event){.kind = OP_EXECUTION, .execution = &view}))
		op_done(&in->op, &(struct op_event){.kind = OP_DONE});
}

/* Returns whether the unread rest will never be read. */
static bool input_is_lost(const struct input_op *in, uint64_t left)
{
	const struct execution *x = in->execution;
	bool unwritten = in->waiting.len > 0 || (in->request.while_read && !in->complete);
	if (in->request.until_taken && execution_input_is_deaf(x))
		return true;
	if (in->request.until_taken && execution_has_ended(x) && left > 0)
		return true;
	return unwritten && !execution_input_is_open(x);
}

/* Writes what waits. False: the operation is over. */
static bool input_advance(struct input_op *in)
{
	struct execution *x = in->execution;
	struct error e;
	if (!x)
		return true;
	buf_consume(&in->waiting, execution_input_write(x, in->waiting.data, in->waiting.len));
	uint64_t left = execution_input_offset(x) - execution_input_delivered(x);
	if (input_is_lost(in, left)) {
		error_set(&e, ERROR_STDIN_CLOSED, "the process does not read its stdin any more");
		op_fail(&in->op, OP_ERROR, &e);
		return false;
	}
	if (in->waiting.len > 0 || !in->complete)
		return true;
	if (in->request.closes)
		execution_input_close(x);
	if (in->request.until_taken && left > 0)
		return true;
	input_tell(in);
	return false;
}

static void input_room_again(void *arg)
{
	struct input_op *in = arg;
	bool waited = in->waiting.len > 0;
	if (input_advance(in) && waited && in->waiting.len == 0)
		op_emit(&in->op, &(struct op_event){.kind = OP_ROOM});
}

static void input_changed(void *arg)
{
	struct input_op *in = arg;
	if (!execution_input_is_open(in->execution))
		input_advance(in);
}

/* ---- which ---- */

static int input_check_open(const struct execution *x, struct error *e)
{
	if (execution_input_is_open(x))
		return 0;
	return execution_has_ended(x)
		       ? error_set(e, ERROR_NOT_RUNNING, "the process has ended")
		       : error_set(e, ERROR_STDIN_CLOSED, "the process has no open stdin");
}

static int input_check_offset(struct input_op *in, const struct execution *x, struct error *e)
{
	uint64_t have = execution_input_offset(x), offset = in->request.offset;
	if (!in->request.at_offset)
		return 0;
	if (offset > have)
		return error_set_field(e, ERROR_INVALID_FIELD, "offset",
			"\"offset\" leaves a gap: the process has got %llu bytes",
			(unsigned long long)have);
	in->skip = have - offset;
	return 0;
}

static size_t input_skip(struct input_op *in, size_t len)
{
	size_t skipped = in->skip < len ? (size_t)in->skip : len;
	in->skip -= skipped;
	return skipped;
}

static void input_found(struct op *op, struct execution *x)
{
	struct input_op *in = (struct input_op *)op;
	struct error e = {0};
	if (!x) {
		op_fail_missing(op);
		return;
	}
	if (input_check_offset(in, x, &e) < 0 ||
		(!in->request.named_later && input_check_open(x, &e) < 0)) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	bool waited = in->waiting.len > 0;
	buf_consume(&in->waiting, input_skip(in, in->waiting.len));
	in->execution = x;
	in->watcher = (struct execution_watcher){
		.changed = input_changed, .room = input_room_again, .arg = in};
	execution_watch(x, &in->watcher);
	op_has_begun(op);
	if (input_advance(in) && waited && in->waiting.len == 0)
		op_emit(op, &(struct op_event){.kind = OP_ROOM});
}

static void input_search(struct input_op *in, const struct execution_ref *ref)
{
	if (in->sought)
		return;
	in->sought = true;
	in->name = mem_copy_text(ref->text);
	in->search = (struct op_search){.op = &in->op, .ref = *ref, .found = input_found};
	in->search.ref.text = in->name;
	op_search(&in->search);
}

/* ---- an operation ---- */

static void input_resume(struct op *op)
{
	struct input_op *in = (struct input_op *)op;
	if (!in->request.named_later)
		input_search(in, &in->request.process);
}

static void op_input_put(struct op *op, const struct op_item *item)
{
	struct input_op *in = (struct input_op *)op;
	if (item->kind == OP_ITEM_PROCESS) {
		input_search(in, &item->process);
	} else if (item->kind == OP_ITEM_DATA) {
		size_t skipped = input_skip(in, item->bytes.len);
		buf_append(&in->waiting, item->bytes.data + skipped, item->bytes.len - skipped);
		input_advance(in);
	} else if (item->kind == OP_ITEM_END) {
		in->complete = true;
		input_advance(in);
	}
}

static size_t input_room(const struct op *op)
{
	return ((const struct input_op *)op)->waiting.len == 0 ? INPUT_ROOM : 0;
}

static void input_release(struct op *op, enum op_end end)
{
	struct input_op *in = (struct input_op *)op;
	if (in->execution && end != OP_ENDED && in->request.closes_if_left && !op->ops->stopping)
		execution_input_close(in->execution);
	if (in->execution)
		execution_unwatch(take_ptr(in->execution), &in->watcher);
	buf_finish(&in->waiting);
	/* A search that is under way still points at the name, but does not look at it. */
	free(take_ptr(in->name));
}

struct op *op_input(const struct op_call *call, const struct op_input *request)
{
	static const struct op_type type = {.name = "process.input",
		.changes = true,
		.resume = input_resume,
		.release = input_release,
		.put = op_input_put,
		.room = input_room};
	struct sandbox *s;
	struct input_op *in = (struct input_op *)op_new(call, &type, sizeof *in, &s);
	in->request = *request;
	return &in->op;
}
