/*
 * Input of a caller to a command: stdin, signals, the size of its terminal. Input waits here while
 * the process does not read; the caller is asked for more when all of it is written.
 */
#include "op/exec_op.h"

#define INPUT_ROOM (64u * 1024)

static void exec_input_refuse(struct exec_op *x, enum error_code code, const char *text)
{
	struct error e;
	error_set(&e, code, "%s", text);
	op_emit(&x->op, &(struct op_event){.kind = OP_REFUSED, .error = &e});
}

static void exec_input_push(struct exec_op *x)
{
	size_t n = execution_input_write(x->execution, x->input.data, x->input.len);
	buf_consume(&x->input, n);
	if (x->input.len > 0 && !execution_input_is_open(x->execution))
		buf_finish(&x->input);
	if (x->input.len == 0 && x->input_ends)
		execution_input_close(x->execution);
}

void exec_input_proceed(struct exec_op *x)
{
	bool waited = x->input.len > 0;
	if (!waited && !x->input_ends)
		return;
	exec_input_push(x);
	if (waited && x->input.len == 0)
		op_emit(&x->op, &(struct op_event){.kind = OP_ROOM});
}

static void exec_input_append(struct exec_op *x, const char *data, size_t len)
{
	if (!execution_input_is_open(x->execution) || x->input_ends) {
		exec_input_refuse(x, ERROR_STDIN_CLOSED, "the process has no open stdin");
		return;
	}
	buf_append(&x->input, data, len);
	exec_input_push(x);
}

void exec_input_put(struct op *op, const struct op_item *item)
{
	struct exec_op *x = (struct exec_op *)op;
	if (!x->execution) {
		exec_input_refuse(x, ERROR_NOT_RUNNING, "the process does not run");
	} else if (item->kind == OP_ITEM_DATA) {
		exec_input_append(x, item->bytes.data, item->bytes.len);
	} else if (item->kind == OP_ITEM_END) {
		x->input_ends = true;
		exec_input_push(x);
	} else if (item->kind == OP_ITEM_SIGNAL) {
		execution_signal(x->execution, item->signal.number, item->signal.tree);
	} else if (item->kind == OP_ITEM_RESIZE &&
		   !execution_resize(x->execution, item->size.rows, item->size.columns)) {
		exec_input_refuse(x, ERROR_INVALID_FIELD,
			"a terminal is needed, and \"rows\" and \"columns\" from 1 to 1000");
	}
}

size_t exec_input_room(const struct op *op)
{
	return ((const struct exec_op *)op)->input.len == 0 ? INPUT_ROOM : 0;
}
