#include "op/code.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "box/code/code.h"
#include "op/op_core.h"

static struct code_context *context_of_ref(
	struct op *op, const struct op_context_ref *ref, struct error *e)
{
	enum code_language language;
	struct sandbox *s = op_sandbox(op, e);
	struct code_context *c = s ? code_context_find(s, ref->name) : NULL;
	if (!s || c)
		return c;
	if (ref->or_language && code_language_of(ref->name, &language, NULL) == 0)
		return code_context_default(s, language, ref->user, e);
	op->reason = OP_NO_CONTEXT;
	error_set(e, ERROR_NOT_FOUND, "there is no such context");
	return NULL;
}

static void context_done(struct op *op, const struct code_context *c)
{
	struct code_context_view view;
	code_context_view(c, &view);
	op_done(op, &(struct op_event){.kind = OP_DONE, .context = &view});
}

/* ---- create, list ---- */

struct context_new {
	enum code_language language;
	struct code_place place;
};

static void context_created(void *arg, struct code_context *c, const struct error *e)
{
	struct op *op = arg;
	if (!op_awaited(op))
		return;
	if (c)
		context_done(op, c);
	else
		op_fail(op, OP_ERROR, e);
}

static void context_create_ask(struct op *op)
{
	const struct context_new *what = op_asked(op);
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	if (!s || code_context_create(s, what->language, &what->place, context_created, op, &e) < 0)
		op_called_back(op, &e);
}

struct op *op_context_create(
	const struct op_call *call, enum code_language language, const struct code_place *place)
{
	static const struct op_type type = {"context.create", .changes = true,
		.outlives_caller = true, .ask = context_create_ask};
	const struct context_new what = {language, *place};
	return op_ask(call, &type, &what, sizeof what);
}

enum context_kinds {
	CONTEXTS_DEFAULT = 1,
	CONTEXTS_OTHER = 2
};

/* False: the operation is gone. */
static bool context_list_tell(struct op *op, const struct sandbox *s, unsigned kinds)
{
	struct code_context_view view;
	for (const struct code_context *c = code_context_first(s); c; c = code_context_next(c)) {
		code_context_view(c, &view);
		if ((kinds & (view.is_default ? CONTEXTS_DEFAULT : CONTEXTS_OTHER)) &&
			!op_emit(op, &(struct op_event){.kind = OP_ROW, .context = &view}))
			return false;
	}
	return true;
}

static void context_list_ask(struct op *op)
{
	static const enum code_language always[] = {CODE_PYTHON, CODE_JAVASCRIPT};
	const struct op_context_query *query = op_asked(op);
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	for (size_t i = 0; query->with_defaults && i < ARRAY_LEN(always); i++)
		code_context_default(s, always[i], query->user, NULL);
	if (query->with_defaults ? context_list_tell(op, s, CONTEXTS_DEFAULT) &&
					   context_list_tell(op, s, CONTEXTS_OTHER)
				 : context_list_tell(op, s, CONTEXTS_DEFAULT | CONTEXTS_OTHER))
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_context_list(const struct op_call *call, const struct op_context_query *query)
{
	static const struct op_type type = {"context.list", .ask = context_list_ask};
	return op_ask(call, &type, query, sizeof *query);
}

/* ---- one of them ---- */

static void context_get_ask(struct op *op)
{
	struct error e;
	const struct code_context *c = context_of_ref(op, op_asked(op), &e);
	if (c)
		context_done(op, c);
	else
		op_fail(op, op->reason, &e);
}

static void context_interrupt_ask(struct op *op)
{
	struct error e;
	struct code_context_view view;
	struct code_context *c = context_of_ref(op, op_asked(op), &e);
	if (!c) {
		op_fail(op, op->reason, &e);
		return;
	}
	bool interrupted = code_context_interrupt(c);
	code_context_view(c, &view);
	view.status = interrupted ? CODE_CONTEXT_RUNNING : CODE_CONTEXT_IDLE;
	op_done(op, &(struct op_event){.kind = OP_DONE, .context = &view});
}

static void context_change(
	struct op *op, void (*change)(struct code_context *c,
			       void (*done)(void *arg, const struct error *e), void *arg))
{
	struct error e;
	struct code_context *c = context_of_ref(op, op_asked(op), &e);
	if (!c) {
		op_fail(op, op->reason, &e);
		return;
	}
	op_await(op);
	change(c, op_called_back, op);
}

static void context_delete_ask(struct op *op)
{
	context_change(op, code_context_delete);
}

static void context_restart_ask(struct op *op)
{
	context_change(op, code_context_restart);
}

struct op *op_context_get(const struct op_call *call, const struct op_context_ref *ref)
{
	static const struct op_type type = {"context.get", .ask = context_get_ask};
	return op_ask(call, &type, ref, sizeof *ref);
}

struct op *op_context_delete(const struct op_call *call, const struct op_context_ref *ref)
{
	static const struct op_type type = {"context.delete", .changes = true,
		.outlives_caller = true, .ask = context_delete_ask};
	return op_ask(call, &type, ref, sizeof *ref);
}

struct op *op_context_restart(const struct op_call *call, const struct op_context_ref *ref)
{
	static const struct op_type type = {"context.restart", .changes = true,
		.outlives_caller = true, .ask = context_restart_ask};
	return op_ask(call, &type, ref, sizeof *ref);
}

struct op *op_context_interrupt(const struct op_call *call, const struct op_context_ref *ref)
{
	static const struct op_type type = {
		"context.interrupt", .changes = true, .ask = context_interrupt_ask};
	return op_ask(call, &type, ref, sizeof *ref);
}

/* ---- runs ---- */

#define CODE_PIECE (64u * 1024)

struct code_op {
	struct op op;
	struct op_code_run request; /* what it points at: until it has begun */
	struct code_run *run;       /* NULL: not yet */
	struct utf8_rest rests[2];  /* of stdout and stderr */
	size_t told;                /* bytes since the last OP_IDLE */
	bool ended;
};

/* False: the operation is gone. */
static bool code_emit(struct code_op *x, struct code_event *event)
{
	bool is_stderr = event->type == CODE_EVENT_STDERR;
	autobuf text = {0};
	if (is_stderr || event->type == CODE_EVENT_STDOUT) {
		struct code_field *f = &event->fields[0];
		utf8_join(&x->rests[is_stderr], f->data, f->len, &text);
		*f = (struct code_field){text.data, text.len};
		if (text.len == 0)
			return true;
	}
	for (size_t i = 0; i < event->field_count; i++)
		x->told += event->fields[i].len;
	return op_emit(&x->op, &(struct op_event){.kind = OP_CODE, .code = event});
}

static void code_fail_lost(struct code_op *x)
{
	struct error e;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox is gone");
	op_fail(&x->op, OP_BROKEN, &e);
}

/* False: there is nothing more to tell now, or the operation is gone. */
static bool code_tell_next(struct code_op *x)
{
	struct code_event event = {0};
	bool has_event = !x->ended && code_run_next(x->run, &event);
	if (has_event && event.type == CODE_EVENT_LOST) {
		code_fail_lost(x);
		return false;
	}
	if (has_event) {
		x->ended = event.type == CODE_EVENT_END;
		return code_emit(x, &event);
	}
	if (x->ended)
		op_done(&x->op, &(struct op_event){.kind = OP_DONE});
	else
		op_emit(&x->op, &(struct op_event){.kind = OP_IDLE});
	return false;
}

static void code_tell(struct code_op *x)
{
	while (!x->op.paused) {
		if (!code_tell_next(x))
			return;
		if (x->told < CODE_PIECE || x->op.paused)
			continue;
		x->told = 0;
		if (!op_emit(&x->op, &(struct op_event){.kind = OP_IDLE}))
			return;
	}
}

static void code_changed(void *arg)
{
	struct code_op *x = arg;
	if (x->run)
		code_tell(x);
}

static int code_begin(struct code_op *x, struct error *e)
{
	struct code_run_spec spec = x->request.spec;
	struct sandbox *s = op_sandbox(&x->op, e);
	struct code_context *c = context_of_ref(&x->op, &x->request.context, e);
	if (!s || !c)
		return -1;
	spec.env = op_add_template(&x->op, s, x->request.template_variable, spec.env);
	if (code_run_start(c, &spec, code_changed, x, &x->run, e) < 0)
		return -1;
	op_has_begun(&x->op);
	return 0;
}

static void code_resume(struct op *op)
{
	struct code_op *x = (struct code_op *)op;
	struct error e = {0};
	if (!x->run && code_begin(x, &e) < 0)
		op_fail(op, op->reason, &e);
	else
		code_tell(x);
}

static void code_release(struct op *op, enum op_end end)
{
	struct code_op *x = (struct code_op *)op;
	(void)end;
	if (x->run)
		code_run_close(x->run);
}

struct op *op_code_run(const struct op_call *call, const struct op_code_run *request)
{
	static const struct op_type type = {
		"code.run", .changes = true, .resume = code_resume, .release = code_release};
	struct sandbox *s;
	struct code_op *x = (struct code_op *)op_new(call, &type, sizeof *x, &s);
	x->request = *request;
	return &x->op;
}
