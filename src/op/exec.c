/*
 * Commands, begun by steps. A command outlives its caller.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "op/exec_op.h"
#include "box/core/creation.h"

#define PIECE (64u * 1024)

/* ---- the steps ---- */

enum step_result {
	STEP_FAILED = -1,
	STEP_DONE,
	STEP_WAITS /* exec_step_ended will be called */
};

static void exec_advance(struct exec_op *x);

static void exec_step_ended(struct exec_op *x, const struct error *e)
{
	if (e)
		op_fail(&x->op, OP_ERROR, e);
	else
		exec_advance(x);
}

static void exec_step_called_back(void *arg, const struct error *e)
{
	if (op_awaited(arg))
		exec_step_ended(arg, e);
}

static enum step_result exec_check_busy(struct exec_op *x, struct sandbox *s, struct error *e)
{
	for (struct execution *other = execution_first(s); x->request.exclusive && other;
		other = execution_next(other)) {
		struct execution_view view;
		execution_view(other, &view);
		if (view.kind == EXECUTION_COMMAND && !execution_has_ended(other)) {
			x->op.reason = OP_BUSY;
			return (enum step_result)error_set(
				e, ERROR_IN_USE, "the sandbox runs another command");
		}
	}
	return STEP_DONE;
}

static enum step_result exec_check_name(struct exec_op *x, struct sandbox *s, struct error *e)
{
	const char *name = x->request.spec.name;
	if (!x->request.unique_name || !name || !execution_find_name(s, name))
		return STEP_DONE;
	return (enum step_result)error_set_field(e, ERROR_NAME_TAKEN, "name",
		"something with the name '%.64s' runs in the sandbox already", name);
}

static enum step_result exec_wake(struct exec_op *x, struct sandbox *s, struct error *e)
{
	struct sandbox_view view;
	(void)e;
	if (!x->request.wakes)
		return STEP_DONE;
	sandbox_view(s, &view);
	x->woke = sandbox_sleeps(&view);
	op_await(&x->op);
	sandbox_resume(s, true, exec_step_called_back, x);
	return STEP_WAITS;
}

static void exec_created(void *arg, struct sandbox *s, const struct error *e)
{
	struct exec_op *x = arg;
	if (s && x->op.gone)
		sandbox_destroy(s, NULL, NULL);
	if (op_awaited(&x->op))
		exec_step_ended(x, e);
}

static enum step_result exec_create(struct exec_op *x, struct sandbox *s, struct error *e)
{
	struct sandbox_view view;
	if (!x->request.creates)
		return STEP_DONE;
	s = sandbox_create(x->op.ops->box, x->request.creates, exec_created, x, e);
	if (!s)
		return STEP_FAILED;
	op_await(&x->op);
	sandbox_view(s, &view);
	x->op.summary.sandbox = x->op.sandbox = mem_copy_text(view.id);
	return STEP_WAITS;
}

static void exec_first_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void exec_first_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct exec_op *x = arg;
	(void)result;
	x->file = NULL;
	exec_step_ended(x, e);
}

static enum step_result exec_do_first(struct exec_op *x, struct sandbox *s, struct error *e)
{
	static const struct file_events events = {
		.entry = exec_first_entry, .done = exec_first_done};
	struct sandbox_view view;
	if (!x->request.first)
		return STEP_DONE;
	sandbox_view(s, &view);
	if (view.executions > 0 || strcmp(view.workdir, x->request.first->workdir) != 0)
		return STEP_DONE;
	int r = op_make_home(s, view.workdir, &events, x, &x->file, e);
	return r < 0 ? STEP_FAILED : STEP_WAITS;
}

static enum step_result exec_write_files(struct exec_op *x, struct sandbox *s, struct error *e)
{
	const struct execution_spec *spec = &x->request.spec;
	(void)e;
	if (x->request.file_count == 0)
		return STEP_DONE;
	op_await(&x->op);
	files_write(s, &(struct files_owner){spec->user, spec->cwd}, x->request.files,
		x->request.file_count, exec_step_called_back, x);
	return STEP_WAITS;
}

static enum step_result exec_start(struct exec_op *x, struct sandbox *s, struct error *e)
{
	x->request.spec.env =
		op_add_template(&x->op, s, x->request.template_variable, x->request.spec.env);
	if (execution_start(s, &x->request.spec, &x->execution, e) < 0)
		return STEP_FAILED;
	if (x->request.spec.attended)
		op_guard(x->op.ops, x->execution);
	execution_watch(x->execution, &x->watcher);
	op_has_begun(&x->op);
	return STEP_DONE;
}

static const struct {
	const char *name;
	enum step_result (*run)(struct exec_op *x, struct sandbox *s, struct error *e);
} steps[] = {
	{"create", exec_create},
	{"nothing else runs", exec_check_busy},
	{"wake", exec_wake},
	{"first work", exec_do_first},
	{"files", exec_write_files},
	{"nothing else runs still", exec_check_busy},
	{"the name is free", exec_check_name},
	{"start", exec_start},
};

/* Finds the sandbox whenever it goes on: meanwhile it may have gone. */
static void exec_advance(struct exec_op *x)
{
	struct error e = {0};
	bool made = x->step > 0 || !x->request.creates;
	struct sandbox *s = made ? op_sandbox(&x->op, &e) : NULL;
	enum step_result r = s || !made ? STEP_DONE : STEP_FAILED;
	while (r == STEP_DONE && x->step < ARRAY_LEN(steps))
		r = steps[x->step++].run(x, s, &e);
	if (r == STEP_FAILED)
		op_fail(&x->op, x->op.reason, &e);
	/* Streams and results are told by the watcher, from the start or at the end. */
	else if (r == STEP_DONE && x->request.wants == OP_EXEC_START)
		exec_tell(x);
}

/* ---- an operation ---- */

static void exec_resume(struct op *op)
{
	struct exec_op *x = (struct exec_op *)op;
	if (x->step == 0)
		exec_advance(x);
	else if (x->execution || x->exited)
		exec_tell(x);
}

void exec_release(struct op *op, enum op_end end)
{
	struct exec_op *x = (struct exec_op *)op;
	if (x->file)
		file_cancel(take_ptr(x->file));
	if (x->execution && end == OP_CANCELLED)
		execution_cancel(x->execution);
	if (x->execution && x->announced && end == OP_LEFT)
		exec_tell_unsee(x);
	bool unused = end == OP_ENDED ? !x->execution && !x->exited : !op->ops->stopping;
	exec_tell_stop(x);
	op_timer_stop(&x->wait);
	buf_finish(&x->input);
	struct error e;
	struct sandbox *own = x->request.creates && op->sandbox ? op_sandbox(op, &e) : NULL;
	if (own && unused)
		sandbox_destroy(own, NULL, NULL);
	if (x->request.wants == OP_EXEC_RESULT && x->exited)
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			output_copy_finish(&x->copies[i]);
}

static const struct op_type exec_type = {
	.name = "exec",
	.changes = true,
	.outlives_caller = true,
	.resume = exec_resume,
	.release = exec_release,
	.put = exec_input_put,
	.room = exec_input_room,
};

static void exec_changed(void *arg)
{
	exec_tell(arg);
}

static void exec_stdin_has_room(void *arg)
{
	exec_input_proceed(arg);
}

struct exec_op *exec_new(const struct op_call *call, const struct op_type *type, size_t piece)
{
	struct sandbox *s;
	struct exec_op *x = (struct exec_op *)op_new(call, type, sizeof *x, &s);
	x->request.piece = piece ? piece : PIECE;
	x->watcher = (struct execution_watcher){.changed = exec_changed,
		.room = exec_stdin_has_room,
		.arrived = exec_tell_arrived,
		.arg = x};
	return x;
}

struct op *op_exec(const struct op_call *call, const struct op_exec *request)
{
	struct exec_op *x = exec_new(call, &exec_type, request->piece);
	size_t piece = x->request.piece;
	x->request = *request;
	x->request.piece = piece;
	x->watcher.paced = request->wants == OP_EXEC_STREAM && !request->unpaced;
	return &x->op;
}
