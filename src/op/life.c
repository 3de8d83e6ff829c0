/* A sandbox paused or resumed: carried through, whoever leaves. */
#include "op/life.h"
#include "op/op_core.h"

struct move_op {
	struct op op;
	bool keep_memory, under_way;
	void (*move)(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg);
};

static void move_done(void *arg, const struct error *e)
{
	struct op *op = arg;
	struct error gone;
	struct sandbox_view view;
	if (!op_awaited(op))
		return;
	struct sandbox *s = op_sandbox(op, &gone);
	if (s)
		sandbox_view(s, &view);
	else
		error_set(&gone, ERROR_NOT_FOUND, "the sandbox was deleted");
	if (e || !s)
		op_fail(op, OP_ERROR, e ? e : &gone);
	else
		op_done(op, &(struct op_event){.kind = OP_DONE, .sandbox = &view});
}

static void move_resume(struct op *op)
{
	struct move_op *m = (struct move_op *)op;
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	if (m->under_way || !s)
		return;
	m->under_way = true;
	op_await(op);
	m->move(s, m->keep_memory, move_done, op);
}

static const struct op_type pause_type = {
	"pause", .changes = true, .outlives_caller = true, .resume = move_resume};
static const struct op_type resume_type = {
	"resume", .changes = true, .outlives_caller = true, .resume = move_resume};

static struct op *begin(const struct op_call *call, const struct op_type *type, bool keep_memory,
	void (*move)(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg))
{
	struct sandbox *s;
	struct move_op *m = (struct move_op *)op_new(call, type, sizeof *m, &s);
	m->keep_memory = keep_memory;
	m->move = move;
	return &m->op;
}

struct op *op_pause(const struct op_call *call, bool keep_memory)
{
	return begin(call, &pause_type, keep_memory, sandbox_pause);
}

struct op *op_resume_sandbox(const struct op_call *call, bool keep_memory)
{
	return begin(call, &resume_type, keep_memory, sandbox_resume);
}
