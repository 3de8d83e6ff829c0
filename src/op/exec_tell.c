/*
 * How a command is told: live and at the pace of the caller, as a result when it has ended, or
 * just that it began.
 *
 * Nobody knows what a caller that leaves has still taken in: output may be on its way, in a buffer
 * of its machine, or in the program, which drops it. So what it was told in its last quarter of a
 * second counts as missed, and the next caller that asks for `where_left` gets it. Of a caller that
 * did not keep up, what its buffers can hold counts as missed, too.
 */
#include <string.h>

#include "base/cleanup.h"
#include "op/exec_op.h"

#define RECENT_MS   250
#define MARK_MS     25 /* EXEC_MARKS of them are more than RECENT_MS */
#define BUFFERS_MAX (4u << 20)

/* Notes how far the caller has been told, before it is told more. */
static void exec_tell_note(struct exec_op *x)
{
	struct exec_mark *marks = x->marks;
	uint64_t then = x->last_told_ms;
	x->last_told_ms = uv_now(x->op.ops->loop);
	if (x->mark_count && then - marks[x->mark_count - 1].time_ms < MARK_MS)
		return;
	if (x->mark_count == EXEC_MARKS)
		memmove(marks, marks + 1, --x->mark_count * sizeof *marks);
	struct exec_mark *mark = &marks[x->mark_count++];
	mark->time_ms = then;
	memcpy(mark->position, x->watcher.position, sizeof mark->position);
}

/* The latest mark that is at least RECENT_MS old; else the first. */
static const struct exec_mark *exec_tell_safe_mark(const struct exec_op *x, uint64_t now)
{
	unsigned i = x->mark_count - 1;
	while (i > 0 && now - x->marks[i].time_ms < RECENT_MS)
		i--;
	return &x->marks[i];
}

void exec_tell_arrived(void *arg, uint64_t position[EXECUTION_STREAMS])
{
	const struct exec_op *x = arg;
	uint64_t now = uv_now(x->op.ops->loop);
	memcpy(position, x->watcher.position, sizeof x->watcher.position);
	if (x->mark_count == 0 || (now - x->last_told_ms >= RECENT_MS && !x->op.paused))
		return;
	const struct exec_mark *safe = exec_tell_safe_mark(x, now);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		uint64_t begin = x->began[i], told = position[i] - begin;
		position[i] = safe->position[i];
		if (x->op.paused && told > BUFFERS_MAX)
			begin += told - BUFFERS_MAX;
		if (x->op.paused && begin < position[i])
			position[i] = begin;
	}
}

void exec_tell_unsee(struct exec_op *x)
{
	uint64_t arrived[EXECUTION_STREAMS];
	exec_tell_arrived(x, arrived);
	memcpy(x->watcher.position, arrived, sizeof arrived);
	execution_unsee(x->execution, arrived);
}

/* Returns whether the command ended because its sandbox did, or was suspended. */
static bool exec_tell_lost(const struct exec_op *x, const struct execution_view *ended)
{
	struct sandbox_view view;
	if (execution_was_cut(x->execution))
		return true;
	if (ended->status == EXECUTION_COMPLETED || x->past)
		return false;
	const struct sandbox *s = sandbox_find_any(x->op.ops->box, ended->sandbox_id);
	if (!s)
		return true;
	sandbox_view(s, &view);
	return view.ending || view.status > SANDBOX_RUNNING;
}

static bool exec_tell_state(struct exec_op *x, enum op_event_kind kind)
{
	struct execution_view view;
	execution_view(x->execution, &view);
	return op_emit(&x->op, &(struct op_event){.kind = kind,
				       .execution = &view,
				       .woke = x->woke,
				       .lost = kind == OP_EXITED && exec_tell_lost(x, &view)});
}

static void exec_tell_fail(struct exec_op *x)
{
	struct error e;
	error_set(&e, ERROR_INTERNAL, "output that was kept cannot be read");
	op_fail(&x->op, OP_BROKEN, &e);
}

/* False: the operation is gone. */
static bool exec_tell_output(struct exec_op *x, unsigned stream)
{
	autobuf data = {0};
	uint64_t before = x->watcher.position[stream];
	if (x->watcher.ignores[stream])
		return true;
	if (!execution_read(x->execution, &x->watcher, stream, x->request.piece, &data)) {
		exec_tell_fail(x);
		return false;
	}
	uint64_t begin = x->watcher.position[stream] - data.len;
	if (data.len == 0 && begin == before)
		return true;
	return op_emit(&x->op, &(struct op_event){.kind = OP_OUTPUT,
				       .output = {stream, begin, begin - before, &data}});
}

static bool exec_tell_is_complete(const struct exec_op *x)
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
static bool exec_tell_pieces(struct exec_op *x)
{
	struct op *op = &x->op;
	uint64_t before[EXECUTION_STREAMS];
	for (;;) {
		exec_tell_note(x);
		memcpy(before, x->watcher.position, sizeof before);
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			if (!exec_tell_output(x, i) || op->paused)
				return false;
		bool moved = memcmp(before, x->watcher.position, sizeof before) != 0;
		if (!moved || exec_tell_is_complete(x))
			return true;
		if (!op_emit(op, &(struct op_event){.kind = OP_IDLE}) || op->paused)
			return false;
	}
}

static void exec_tell_live(struct exec_op *x)
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
		if (!exec_tell_state(x, OP_STARTED) || op->paused)
			return;
	}
	bool ended = execution_has_ended(x->execution);
	if (!exec_tell_pieces(x))
		return;
	if ((!ended && !x->attach.stops) || !exec_tell_is_complete(x)) {
		op_emit(op, &(struct op_event){.kind = OP_IDLE});
		return;
	}
	x->exited = true;
	if (!ended || (exec_tell_state(x, OP_EXITED) && !op->paused))
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

void exec_tell_stop(struct exec_op *x)
{
	if (x->execution)
		execution_unwatch(take_ptr(x->execution), &x->watcher);
}

static void exec_tell_result(struct exec_op *x)
{
	struct op *op = &x->op;
	bool waits = !x->joined || x->wait;
	if (!x->exited && waits && !execution_has_ended(x->execution))
		return;
	if (!x->exited) {
		x->exited = true;
		op_timer_stop(&x->wait);
		execution_copy_output(x->execution, x->copies);
		if (!exec_tell_state(x, OP_EXITED))
			return;
		exec_tell_stop(x);
	}
	for (; x->current < EXECUTION_STREAMS; x->current++, x->position = 0) {
		struct output_copy *c = &x->copies[x->current];
		while (x->position < c->length) {
			autobuf data = {0};
			uint64_t begin = x->position;
			if (op->paused)
				return;
			if (output_copy_read(c, &x->position, x->request.piece, &data) < 0) {
				exec_tell_fail(x);
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

static void exec_tell_start(struct exec_op *x)
{
	if (exec_tell_state(x, OP_STARTED))
		op_done(&x->op, &(struct op_event){.kind = OP_DONE});
}

static void exec_tell_launch(struct exec_op *x)
{
	if (execution_has_started(x->execution))
		exec_tell_start(x);
}

static void exec_tell_no_program(struct exec_op *x)
{
	struct error e;
	struct execution_view view;
	execution_view(x->execution, &view);
	error_set(&e, ERROR_NOT_FOUND, "'%.64s' is not there",
		view.command.len ? view.command.data : "");
	op_fail(&x->op, OP_NO_PROGRAM, &e);
}

void exec_tell(struct exec_op *x)
{
	static void (*const ways[])(struct exec_op *) = {
		[OP_EXEC_STREAM] = exec_tell_live,
		[OP_EXEC_RESULT] = exec_tell_result,
		[OP_EXEC_START] = exec_tell_start,
		[OP_EXEC_LAUNCH] = exec_tell_launch,
	};
	const struct error *refusal = x->execution ? execution_refusal(x->execution) : NULL;
	bool missing =
		x->request.needs_program && x->execution && execution_has_no_program(x->execution);
	if (refusal)
		op_fail(&x->op, OP_ERROR, refusal);
	else if (missing)
		exec_tell_no_program(x);
	else if (!x->op.paused)
		ways[x->request.wants](x);
}
