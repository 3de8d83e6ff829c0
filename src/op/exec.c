/*
 * Commands: begun by steps, told at the pace of whoever listens, joined later by others.
 *
 * A command outlives its caller. What a caller that leaves in the middle of a flood was sent last
 * has most likely not arrived: it counts as missed, for whoever comes next (`where_left`).
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "op/exec.h"
#include "op/op_core.h"
#include "box/core/creation.h"

#define PIECE      (64u * 1024)
#define RECENT_MS  250
#define RECENT_MAX (64u * 1024) /* a client takes in so much at once */

/* Where the caller stood at a moment. */
struct mark {
	uint64_t time_ms; /* of the loop */
	uint64_t position[EXECUTION_STREAMS];
};

struct exec_op {
	struct op op;
	struct op_exec request; /* what it points at: until it has begun */
	struct op_attach attach;
	struct op_search search;
	bool sought, past; /* past: it had ended before it was found */
	uv_timer_t *wait;  /* of a result */
	struct buf input;  /* for stdin: waits for room */
	bool input_ends;   /* behind it */
	size_t step;
	struct file_call *file; /* of the step under way, if it can be cancelled */
	struct execution *execution;
	struct execution_watcher watcher;
	bool woke, announced, exited;
	uint64_t until[EXECUTION_STREAMS]; /* of one that stops */
	struct mark marks[2];              /* at least RECENT_MS apart, the older first */
	uint64_t last_told_ms;
	/* of a result: */
	struct output_copy copies[EXECUTION_STREAMS];
	unsigned current;
	uint64_t position;
};

static const struct op_type exec_type;

/* ---- what a caller that left may not have taken ---- */

static void note_position(struct exec_op *x)
{
	uint64_t now = uv_now(x->op.ops->loop);
	x->last_told_ms = now;
	if (x->marks[1].time_ms && now - x->marks[1].time_ms < RECENT_MS)
		return;
	x->marks[0] = x->marks[1];
	x->marks[1].time_ms = now;
	memcpy(x->marks[1].position, x->watcher.position, sizeof x->watcher.position);
}

static void unsee_recent(struct exec_op *x)
{
	uint64_t now = uv_now(x->op.ops->loop), recent = 0;
	const struct mark *safe = &x->marks[now - x->marks[1].time_ms >= RECENT_MS];
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		recent += x->watcher.position[i] - safe->position[i];
	if (now - x->last_told_ms >= RECENT_MS || recent <= RECENT_MAX)
		return;
	memcpy(x->watcher.position, safe->position, sizeof safe->position);
	execution_unsee(x->execution, safe->position);
}

/* ---- telling ---- */

/* It ended because its sandbox did, or was put to sleep without its memory. */
static bool was_lost(const struct exec_op *x, const struct execution_view *ended)
{
	struct sandbox_view view;
	if (ended->status == EXECUTION_COMPLETED || x->past)
		return false;
	const struct sandbox *s = sandbox_find_any(x->op.ops->box, ended->sandbox_id);
	if (!s)
		return true;
	sandbox_view(s, &view);
	return view.ending || view.status > SANDBOX_RUNNING;
}

static bool tell_state(struct exec_op *x, enum op_event_kind kind)
{
	struct execution_view view;
	execution_view(x->execution, &view);
	return op_emit(&x->op, &(struct op_event){.kind = kind,
				       .execution = &view,
				       .woke = x->woke,
				       .lost = kind == OP_EXITED && was_lost(x, &view)});
}

static void fail_broken(struct exec_op *x)
{
	struct error e;
	error_set(&e, ERROR_INTERNAL, "output that was kept cannot be read");
	op_fail(&x->op, OP_BROKEN, &e);
}

/* False: the operation is gone. */
static bool tell_output(struct exec_op *x, unsigned stream)
{
	autobuf data = {0};
	uint64_t before = x->watcher.position[stream];
	if (x->watcher.ignores[stream])
		return true;
	if (!execution_read(x->execution, &x->watcher, stream, x->request.piece, &data)) {
		fail_broken(x);
		return false;
	}
	uint64_t begin = x->watcher.position[stream] - data.len;
	if (data.len == 0 && begin == before)
		return true;
	return op_emit(&x->op, &(struct op_event){.kind = OP_OUTPUT,
				       .output = {stream, begin, begin - before, &data}});
}

static bool is_all_told(const struct exec_op *x)
{
	struct execution_view view;
	execution_view(x->execution, &view);
	const uint64_t *end = x->attach.stops ? x->until : view.length;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		if (!x->watcher.ignores[i] && x->watcher.position[i] < end[i])
			return false;
	return true;
}

/* A piece of each stream at a time, as long as the caller takes them. False: not any more. */
static bool tell_pieces(struct exec_op *x)
{
	struct op *op = &x->op;
	uint64_t before[EXECUTION_STREAMS];
	for (;;) {
		note_position(x);
		memcpy(before, x->watcher.position, sizeof before);
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			if (!tell_output(x, i) || op->paused)
				return false;
		bool moved = memcmp(before, x->watcher.position, sizeof before) != 0;
		if (!moved || is_all_told(x))
			return true;
		if (!op_emit(op, &(struct op_event){.kind = OP_IDLE}) || op->paused)
			return false;
	}
}

static void tell_live(struct exec_op *x)
{
	struct op *op = &x->op;
	if (x->exited) {
		op_done(op, &(struct op_event){.kind = OP_DONE});
		return;
	}
	if (!x->announced) {
		if (!execution_has_started(x->execution))
			return;
		x->announced = true;
		execution_record(x->execution);
		if (!tell_state(x, OP_STARTED) || op->paused)
			return;
	}
	bool ended = execution_has_ended(x->execution);
	if (!tell_pieces(x))
		return;
	if ((!ended && !x->attach.stops) || !is_all_told(x)) {
		op_emit(op, &(struct op_event){.kind = OP_IDLE});
		return;
	}
	x->exited = true;
	if (!ended || (tell_state(x, OP_EXITED) && !op->paused))
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

static void op_exec_let_go(struct exec_op *x)
{
	if (x->execution)
		execution_unwatch(take_ptr(x->execution), &x->watcher);
}

static void tell_result(struct exec_op *x)
{
	struct op *op = &x->op;
	bool waits = op->type == &exec_type || x->wait;
	if (!x->exited && waits && !execution_has_ended(x->execution))
		return;
	if (!x->exited) {
		x->exited = true;
		op_timer_stop(&x->wait);
		execution_copy_output(x->execution, x->copies);
		if (!tell_state(x, OP_EXITED))
			return;
		op_exec_let_go(x);
	}
	for (; x->current < EXECUTION_STREAMS; x->current++, x->position = 0) {
		const struct output_copy *c = &x->copies[x->current];
		while (x->position < c->length) {
			autobuf data = {0};
			uint64_t begin = x->position;
			if (op->paused)
				return;
			if (output_copy_read(c, &x->position, x->request.piece, &data) < 0) {
				fail_broken(x);
				return;
			}
			if (!op_emit(op, &(struct op_event){.kind = OP_OUTPUT,
						 .output = {x->current, begin, 0, &data}}))
				return;
		}
	}
	if (!op->paused)
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

static void tell_start(struct exec_op *x)
{
	if (tell_state(x, OP_STARTED))
		op_done(&x->op, &(struct op_event){.kind = OP_DONE});
}

static void tell_launch(struct exec_op *x)
{
	if (execution_has_started(x->execution))
		tell_start(x);
}

static void exec_fail_without_program(struct exec_op *x)
{
	struct error e;
	struct execution_view view;
	execution_view(x->execution, &view);
	error_set(
		&e, ERROR_NOT_FOUND, "'%.64s' is not there", view.command_len ? view.command : "");
	op_fail(&x->op, OP_NO_PROGRAM, &e);
}

static void exec_tell(struct exec_op *x)
{
	static void (*const ways[])(struct exec_op *) = {
		[OP_EXEC_STREAM] = tell_live,
		[OP_EXEC_RESULT] = tell_result,
		[OP_EXEC_START] = tell_start,
		[OP_EXEC_LAUNCH] = tell_launch,
	};
	const struct error *refusal = x->execution ? execution_refusal(x->execution) : NULL;
	bool missing =
		x->request.needs_program && x->execution && execution_has_no_program(x->execution);
	if (refusal)
		op_fail(&x->op, OP_ERROR, refusal);
	else if (missing)
		exec_fail_without_program(x);
	else if (!x->op.paused)
		ways[x->request.wants](x);
}

static void exec_changed(void *arg)
{
	exec_tell(arg);
}

/* ---- the steps ---- */

enum step_result {
	STEP_FAILED = -1,
	STEP_DONE,
	STEP_WAITS /* step_ended will be called */
};

static void exec_advance(struct exec_op *x);

static void step_ended(struct exec_op *x, const struct error *e)
{
	if (e)
		op_fail(&x->op, OP_ERROR, e);
	else
		exec_advance(x);
}

static void step_called_back(void *arg, const struct error *e)
{
	if (op_awaited(arg))
		step_ended(arg, e);
}

static enum step_result check_busy(struct exec_op *x, struct sandbox *s, struct error *e)
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

static enum step_result op_exec_check_name(struct exec_op *x, struct sandbox *s, struct error *e)
{
	const char *name = x->request.spec.name;
	if (!x->request.unique_name || !name || !execution_find_name(s, name))
		return STEP_DONE;
	return (enum step_result)error_set_field(e, ERROR_NAME_TAKEN, "name",
		"something with the name '%.64s' runs in the sandbox already", name);
}

static enum step_result op_exec_wake(struct exec_op *x, struct sandbox *s, struct error *e)
{
	struct sandbox_view view;
	(void)e;
	if (!x->request.wakes)
		return STEP_DONE;
	sandbox_view(s, &view);
	x->woke = view.status == SANDBOX_PAUSED || view.status == SANDBOX_SUSPENDED;
	op_await(&x->op);
	sandbox_resume(s, true, step_called_back, x);
	return STEP_WAITS;
}

static void created(void *arg, struct sandbox *s, const struct error *e)
{
	struct exec_op *x = arg;
	if (s && x->op.gone)
		sandbox_destroy(s, NULL, NULL);
	if (op_awaited(&x->op))
		step_ended(x, e);
}

static enum step_result op_exec_create(struct exec_op *x, struct sandbox *s, struct error *e)
{
	struct sandbox_view view;
	if (!x->request.creates)
		return STEP_DONE;
	s = sandbox_create(x->op.ops->box, x->request.creates, created, x, e);
	if (!s)
		return STEP_FAILED;
	op_await(&x->op);
	sandbox_view(s, &view);
	x->op.record.sandbox = x->op.sandbox = mem_copy_text(view.id);
	return STEP_WAITS;
}

static void first_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void first_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct exec_op *x = arg;
	(void)result;
	x->file = NULL;
	step_ended(x, e);
}

static enum step_result do_first(struct exec_op *x, struct sandbox *s, struct error *e)
{
	static const struct file_events events = {.entry = first_entry, .done = first_done};
	struct sandbox_view view;
	if (!x->request.first)
		return STEP_DONE;
	sandbox_view(s, &view);
	if (view.executions > 0 || strcmp(view.workdir, x->request.first->workdir) != 0)
		return STEP_DONE;
	const struct file_request mkdir = {
		.fixed = {.op = FILE_MKDIR,
			.flags = FILE_PARENTS | FILE_EXIST_OK | FILE_HAS_MODE,
			.mode = 0755},
		.text = {[FILE_CWD] = "/", [FILE_PATH] = view.workdir, [FILE_OWNER] = view.user},
	};
	int r = file_begin(s, "root", &mkdir, &events, x, &x->file, e);
	return r < 0 ? STEP_FAILED : STEP_WAITS;
}

static enum step_result op_exec_write_files(struct exec_op *x, struct sandbox *s, struct error *e)
{
	const struct execution_spec *spec = &x->request.spec;
	(void)e;
	if (x->request.file_count == 0)
		return STEP_DONE;
	op_await(&x->op);
	files_write(s, &(struct files_owner){spec->user, spec->cwd}, x->request.files,
		x->request.file_count, step_called_back, x);
	return STEP_WAITS;
}

static enum step_result start(struct exec_op *x, struct sandbox *s, struct error *e)
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
	{"create", op_exec_create},
	{"nothing else runs", check_busy},
	{"wake", op_exec_wake},
	{"first work", do_first},
	{"files", op_exec_write_files},
	{"nothing else runs still", check_busy},
	{"the name is free", op_exec_check_name},
	{"start", start},
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
	/* Of a stream the beginning is news, of a result the end. */
	else if (r == STEP_DONE && x->request.wants == OP_EXEC_START)
		exec_tell(x);
}

/* ---- input ---- */

#define INPUT_ROOM (64u * 1024)

static void exec_refuse_item(struct exec_op *x, enum error_code code, const char *text)
{
	struct error e;
	error_set(&e, code, "%s", text);
	op_emit(&x->op, &(struct op_event){.kind = OP_REFUSED, .error = &e});
}

static void exec_push_input(struct exec_op *x)
{
	size_t n = execution_input_write(x->execution, x->input.data, x->input.len);
	buf_consume(&x->input, n);
	if (x->input.len > 0 && !execution_input_is_open(x->execution))
		buf_finish(&x->input);
	if (x->input.len == 0 && x->input_ends)
		execution_input_close(x->execution);
}

static void exec_input_room(void *arg)
{
	struct exec_op *x = arg;
	bool waited = x->input.len > 0;
	if (!waited && !x->input_ends)
		return;
	exec_push_input(x);
	if (waited && x->input.len == 0)
		op_emit(&x->op, &(struct op_event){.kind = OP_ROOM});
}

static void exec_put_input(struct exec_op *x, const char *data, size_t len)
{
	if (!execution_input_is_open(x->execution) || x->input_ends) {
		exec_refuse_item(x, ERROR_STDIN_CLOSED, "the process has no open stdin");
		return;
	}
	buf_append(&x->input, data, len);
	exec_push_input(x);
}

static void exec_put(struct op *op, const struct op_item *item)
{
	struct exec_op *x = (struct exec_op *)op;
	if (!x->execution) {
		exec_refuse_item(x, ERROR_NOT_RUNNING, "the process does not run");
	} else if (item->kind == OP_ITEM_DATA) {
		exec_put_input(x, item->bytes.data, item->bytes.len);
	} else if (item->kind == OP_ITEM_END) {
		x->input_ends = true;
		exec_push_input(x);
	} else if (item->kind == OP_ITEM_SIGNAL) {
		execution_signal(x->execution, item->signal.number, item->signal.tree);
	} else if (item->kind == OP_ITEM_RESIZE &&
		   !execution_resize(x->execution, item->size.rows, item->size.columns)) {
		exec_refuse_item(x, ERROR_INVALID_FIELD,
			"a terminal is needed, and \"rows\" and \"columns\" from 1 to 1000");
	}
}

static size_t exec_room(const struct op *op)
{
	return ((const struct exec_op *)op)->input.len == 0 ? INPUT_ROOM : 0;
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

static void exec_release(struct op *op, enum op_end end)
{
	struct exec_op *x = (struct exec_op *)op;
	if (x->file)
		file_cancel(take_ptr(x->file));
	if (x->execution && end == OP_CANCELLED)
		execution_cancel(x->execution);
	if (x->execution && x->announced && end == OP_LEFT)
		unsee_recent(x);
	bool unused = end == OP_ENDED ? !x->execution && !x->exited : !op->ops->stopping;
	op_exec_let_go(x);
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
	.put = exec_put,
	.room = exec_room,
};

static struct exec_op *exec_new(
	const struct op_call *call, const struct op_type *type, size_t piece)
{
	struct sandbox *s;
	struct exec_op *x = (struct exec_op *)op_new(call, type, sizeof *x, &s);
	x->request.piece = piece ? piece : PIECE;
	x->watcher = (struct execution_watcher){
		.changed = exec_changed, .room = exec_input_room, .arg = x};
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

/* ---- joining one ---- */

static void attach_wait_over(uv_timer_t *timer)
{
	struct exec_op *x = timer->data;
	op_timer_stop(&x->wait);
	exec_tell(x);
}

static int attach_position(
	struct exec_op *x, const struct execution_view *view, unsigned i, struct error *e)
{
	const struct op_attach *a = &x->attach;
	uint64_t *position = &x->watcher.position[i], length = view->length[i];
	if (a->from_end[i])
		*position = *position < length ? length - *position : 0;
	if (!a->checked[i] || view->status <= EXECUTION_RUNNING || *position <= length)
		return 0;
	return error_set_field(e, ERROR_INVALID_FIELD, a->checked[i],
		"the output ends at byte %llu", (unsigned long long)length);
}

static int attach_positions(struct exec_op *x, struct execution *found, struct error *e)
{
	struct execution_view view;
	execution_view(found, &view);
	memcpy(x->until, view.length, sizeof x->until);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		if (attach_position(x, &view, i, e) < 0)
			return -1;
	if (x->attach.where_left)
		execution_seen(found, x->watcher.position);
	memcpy(x->marks[1].position, x->watcher.position, sizeof x->watcher.position);
	return 0;
}

static void attach_found(struct op *op, struct execution *found)
{
	struct exec_op *x = (struct exec_op *)op;
	struct error e;
	if (!found) {
		op_fail_missing(op);
		return;
	}
	if (attach_positions(x, found, &e) < 0) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	x->execution = found;
	x->past = execution_has_ended(found);
	execution_watch(found, &x->watcher);
	op_has_begun(op);
	if (x->attach.wait_ms > 0)
		x->wait = op_timer_start(op, x->attach.wait_ms, attach_wait_over);
	exec_tell(x);
}

static void attach_resume(struct op *op)
{
	struct exec_op *x = (struct exec_op *)op;
	if (x->execution || x->exited) {
		exec_tell(x);
	} else if (!x->sought) {
		x->sought = true;
		op_search(&x->search);
	}
}

static const struct op_type attach_type = {
	.name = "exec.attach",
	.outlives_caller = true,
	.resume = attach_resume,
	.release = exec_release,
	.put = exec_put,
	.room = exec_room,
};

struct op *op_attach(const struct op_call *call, const struct op_attach *request)
{
	struct exec_op *x = exec_new(call, &attach_type, request->piece);
	x->attach = *request;
	x->search = (struct op_search){.op = &x->op,
		.ref = request->process,
		.among_ended = request->among_ended,
		.found = attach_found};
	x->request.wants = request->wants;
	x->watcher.paced = request->wants == OP_EXEC_STREAM;
	memcpy(x->watcher.position, request->position, sizeof x->watcher.position);
	memcpy(x->watcher.ignores, request->ignores, sizeof x->watcher.ignores);
	return &x->op;
}
