/*
 * Changes of an existing sandbox: update, pause, resume, delete. Carried through even if the caller
 * leaves.
 */
#include "op/life.h"

#include "op/op_core.h"

/* Tells how the sandbox is after all that. */
static void life_tell(struct op *op, const struct error *e, bool woke)
{
	struct error gone;
	struct sandbox_view view;
	struct sandbox *s = op_sandbox(op, &gone);
	if (s)
		sandbox_view(s, &view);
	else
		error_set(&gone, ERROR_NOT_FOUND, "the sandbox was deleted");
	if (e || !s)
		op_fail(op, OP_ERROR, e ? e : &gone);
	else
		op_done(op, &(struct op_event){.kind = OP_DONE, .sandbox = &view, .woke = woke});
}

static void life_done(void *arg, const struct error *e)
{
	if (op_awaited(arg))
		life_tell(arg, e, false);
}

/* ---- pause and resume ---- */

static void pause_ask(struct op *op)
{
	const struct op_pause *request = op_asked(op);
	struct sandbox_view view;
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	if (s)
		sandbox_view(s, &view);
	if (s && request->unless_paused && sandbox_sleeps(&view)) {
		error_set(&e, ERROR_PAUSED, "the sandbox is paused already");
		s = NULL;
	}
	if (!s) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	op_await(op);
	sandbox_pause(s, request->keep_memory, life_done, op);
}

struct op *op_pause(const struct op_call *call, const struct op_pause *request)
{
	static const struct op_type type = {"pause", true, true, .ask = pause_ask};
	return op_ask(call, &type, request, sizeof *request);
}

static void resume_ask(struct op *op)
{
	const bool *keep_memory = op_asked(op);
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	op_await(op);
	sandbox_resume(s, *keep_memory, life_done, op);
}

struct op *op_resume_sandbox(const struct op_call *call, bool keep_memory)
{
	static const struct op_type type = {"resume", true, true, .ask = resume_ask};
	return op_ask(call, &type, &keep_memory, sizeof keep_memory);
}

/* ---- changes ---- */

static void update_ask(struct op *op)
{
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	if (!s || sandbox_update(s, op_asked(op), life_done, op, &e) < 0)
		life_done(op, &e);
}

struct op *op_update(const struct op_call *call, const struct sandbox_change *change)
{
	static const struct op_type type = {"update", true, true, .ask = update_ask};
	return op_ask(call, &type, change, sizeof *change);
}

static void network_ask(struct op *op)
{
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	const struct op_network *request = op_asked(op);
	if (!s ||
		sandbox_set_network(s, &request->network, request->is_wish, life_done, op, &e) < 0)
		life_done(op, &e);
}

struct op *op_set_network(const struct op_call *call, const struct op_network *request)
{
	static const struct op_type type = {"network", true, true, .ask = network_ask};
	return op_ask(call, &type, request, sizeof *request);
}

/* ---- renew ---- */

static void renew_woken(void *arg, const struct error *e)
{
	if (op_awaited(arg))
		life_tell(arg, e, true);
}

/* A resume begins the lease anew, so that it is set before. */
static void renew_wake(void *arg, const struct error *e)
{
	struct op *op = arg;
	const struct op_renew *request = op_asked(op);
	struct error gone;
	if (!op_awaited(op))
		return;
	struct sandbox *s = op_sandbox(op, &gone);
	op_await(op);
	if (e || !s)
		renew_woken(op, e);
	else
		sandbox_resume(s, request->keep_memory, renew_woken, op);
}

static void renew_ask(struct op *op)
{
	const struct op_renew *request = op_asked(op);
	struct sandbox_view view = {0};
	struct sandbox_change change = {.settings = {.lease_ms = request->lease_ms}};
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	if (s)
		sandbox_view(s, &view);
	bool sleeps = sandbox_sleeps(&view);
	sandbox_change_gives(&change, lease_ms);
	change.lease_extends_only = !sleeps;
	op_await(op);
	if (!s || sandbox_update(s, &change, sleeps ? renew_wake : life_done, op, &e) < 0)
		life_done(op, &e);
}

struct op *op_renew(const struct op_call *call, const struct op_renew *request)
{
	static const struct op_type type = {"renew", true, true, .ask = renew_ask};
	return op_ask(call, &type, request, sizeof *request);
}

/* ---- delete ---- */

static void delete_done(void *arg)
{
	op_called_back(arg, NULL);
}

static void delete_ask(struct op *op)
{
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	op_await(op);
	sandbox_destroy(s, delete_done, op);
}

struct op *op_delete(const struct op_call *call)
{
	static const struct op_type type = {"delete", true, true, .ask = delete_ask, .early = true};
	return op_ask(call, &type, NULL, 0);
}
