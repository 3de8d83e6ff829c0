/*
 * One process: found, told something, waited for, asked what it uses. A wait counts as attendance
 * (execution_watcher.alone).
 */
#include "op/process.h"

#include "base/cleanup.h"
#include "op/op_core.h"

#define INSPECT_MS 2000 /* a paused sandbox's init does not answer */

struct process_op {
	struct op op;
	struct op_process request;
	struct op_search search;
	struct execution *execution;
	struct execution_watcher watcher;
	struct execution_inspection inspection;
	uv_timer_t *timer; /* of the wait, then of the inspection */
	bool sought, waited, inspecting, inspected, told;
};

static void process_advance(struct process_op *p);

/* ---- what it uses ---- */

static void op_process_tell(struct process_op *p, const struct execution_usage *usage)
{
	struct execution_view view;
	execution_view(p->execution, &view);
	p->told = true;
	if (op_emit(&p->op,
		    &(struct op_event){.kind = OP_EXECUTION, .execution = &view, .usage = usage}) &&
		!p->op.paused)
		op_done(&p->op, &(struct op_event){.kind = OP_DONE});
}

static void process_inspected(void *arg, const struct execution_usage *usage)
{
	struct process_op *p = arg;
	p->inspecting = false;
	p->inspected = true;
	op_timer_stop(&p->timer);
	if (!p->op.paused)
		op_process_tell(p, usage);
}

static void process_inspect_late(uv_timer_t *timer)
{
	struct process_op *p = timer->data;
	execution_uninspect(p->execution, &p->inspection);
	process_inspected(p, NULL);
}

static void op_process_inspect(struct process_op *p)
{
	p->inspecting = true;
	p->inspection = (struct execution_inspection){.done = process_inspected, .arg = p};
	p->timer = op_timer_start(&p->op, INSPECT_MS, process_inspect_late);
	execution_inspect(p->execution, &p->inspection);
}

/* ---- the wait ---- */

static void process_wait_over(uv_timer_t *timer)
{
	struct process_op *p = timer->data;
	p->waited = true;
	process_advance(p);
}

static void process_changed(void *arg)
{
	process_advance(arg);
}

static void process_advance(struct process_op *p)
{
	bool ended = execution_has_ended(p->execution);
	if (p->op.paused || p->inspecting || (!ended && !p->waited))
		return;
	p->waited = true;
	op_timer_stop(&p->timer);
	if (p->told)
		op_done(&p->op, &(struct op_event){.kind = OP_DONE});
	else if (ended || !p->request.usage || p->inspected)
		op_process_tell(p, NULL);
	else
		op_process_inspect(p);
}

/* ---- what is said to it ---- */

static int op_process_resize(struct process_op *p, struct error *e)
{
	if (execution_resize(p->execution, p->request.rows, p->request.columns))
		return 0;
	return error_set(e, ERROR_INVALID_REQUEST, "the process has no terminal");
}

static int process_end_input(struct process_op *p, struct error *e)
{
	struct execution_view view;
	execution_view(p->execution, &view);
	if (view.terminal)
		return error_set(e, ERROR_INVALID_REQUEST, "a terminal's stdin cannot be closed");
	execution_input_close(p->execution);
	return 0;
}

static int process_act(struct process_op *p, struct error *e)
{
	const struct op_process *r = &p->request;
	if (r->only_running && execution_has_ended(p->execution))
		return error_set(e, ERROR_NOT_RUNNING, "the process has ended");
	switch (r->act) {
	case OP_PROCESS_LOOK:
		return 0;
	case OP_PROCESS_SIGNAL:
		execution_signal(p->execution, r->signal, r->tree);
		return 0;
	case OP_PROCESS_STOP:
		execution_stop(p->execution, r->grace_ms);
		return 0;
	case OP_PROCESS_KILL:
		execution_cancel(p->execution);
		return 0;
	case OP_PROCESS_RESIZE:
		return op_process_resize(p, e);
	case OP_PROCESS_END_INPUT:
		return process_end_input(p, e);
	}
	return 0;
}

static void process_found(struct op *op, struct execution *x)
{
	struct process_op *p = (struct process_op *)op;
	struct error e = {0};
	if (!x) {
		op_fail_missing(op);
		return;
	}
	p->execution = x;
	p->watcher = (struct execution_watcher){
		.changed = process_changed, .arg = p, .glances = p->request.wait_ms == 0};
	execution_watch(x, &p->watcher);
	op_has_begun(op);
	if (process_act(p, &e) < 0) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	p->waited = p->request.wait_ms == 0;
	if (p->request.wait_ms > 0)
		p->timer = op_timer_start(op, p->request.wait_ms, process_wait_over);
	process_advance(p);
}

/* ---- an operation ---- */

static void process_op_resume(struct op *op)
{
	struct process_op *p = (struct process_op *)op;
	if (p->execution) {
		process_advance(p);
	} else if (!p->sought) {
		p->sought = true;
		op_search(&p->search);
	}
}

static void process_op_release(struct op *op, enum op_end end)
{
	struct process_op *p = (struct process_op *)op;
	(void)end;
	op_timer_stop(&p->timer);
	if (p->inspecting)
		execution_uninspect(p->execution, &p->inspection);
	if (p->execution)
		execution_unwatch(take_ptr(p->execution), &p->watcher);
}

static const struct op_type process_types[] = {
	[OP_PROCESS_LOOK] = {"process.get", false, false, process_op_resume, process_op_release},
	[OP_PROCESS_SIGNAL] = {"process.signal", true, false, process_op_resume,
		process_op_release},
	[OP_PROCESS_STOP] = {"process.stop", true, false, process_op_resume, process_op_release},
	[OP_PROCESS_KILL] = {"process.kill", true, false, process_op_resume, process_op_release},
	[OP_PROCESS_RESIZE] = {"process.resize", true, false, process_op_resume,
		process_op_release},
	[OP_PROCESS_END_INPUT] = {"process.end_input", true, false, process_op_resume,
		process_op_release},
};

struct op *op_process(const struct op_call *call, const struct op_process *request)
{
	struct sandbox *s;
	struct process_op *p =
		(struct process_op *)op_new(call, &process_types[request->act], sizeof *p, &s);
	p->request = *request;
	p->search =
		(struct op_search){.op = &p->op, .ref = request->process, .found = process_found};
	return &p->op;
}
