/* Finds the execution that a request names: a running one, or one in the store. */
#include <stdlib.h>
#include <string.h>

#include "box/core/reconcile.h"
#include "op/op_core.h"

#define SEARCH_MAX   1000 /* of the latest ones */
#define SEARCH_SLICE 16   /* of them at once: each may have 512 KiB of arguments */

static bool search_accepts(const struct op_search *search, const struct execution *x)
{
	struct execution_view view;
	const char *sandbox = search->op->sandbox;
	unsigned kinds = search->ref.kinds;
	execution_view(x, &view);
	return (!sandbox || strcmp(view.sandbox_id, sandbox) == 0) &&
	       (kinds == 0 || (kinds >> view.kind) & 1);
}

static void search_loaded(void *arg, struct execution *x, const struct error *e)
{
	struct op_search *search = arg;
	if (!op_awaited(search->op))
		return;
	if (e)
		op_fail(search->op, OP_ERROR, e);
	else
		search->found(search->op, x && search_accepts(search, x) ? x : NULL);
}

static void search_load(struct op_search *search, const char *sandbox, const char *id)
{
	struct op *op = search->op;
	op_await(op);
	execution_load(op->ops->box, op->tenant, sandbox, id, search_loaded, search);
}

/* ---- by pid or name, among those that have ended ---- */

static void search_past(struct op_search *search);

static void search_listed(void *arg, const struct execution_view *view, const struct error *e)
{
	struct op_search *search = arg;
	struct op *op = search->op;
	const struct execution_ref *ref = &search->ref;
	if (view) {
		search->seen++;
		search->slice++;
		search->before_ms = view->started_ms;
		memcpy(search->before_id, view->id, ID_SIZE);
	}
	if (view && !op->gone && !search->past[0] &&
		(ref->by == EXECUTION_BY_NAME ? strcmp(view->name, ref->text) == 0
					      : view->pid == ref->pid))
		memcpy(search->past, view->id, ID_SIZE);
	if (view || !op_awaited(op))
		return;
	if (e)
		op_fail(op, OP_ERROR, e);
	else if (search->past[0])
		search_load(search, NULL, search->past);
	else if (search->slice < SEARCH_SLICE || search->seen >= SEARCH_MAX)
		search->found(op, NULL);
	else
		search_past(search);
}

static void search_past(struct op_search *search)
{
	struct sandbox_view view;
	struct error e;
	const struct sandbox *s = op_sandbox(search->op, &e);
	if (!s) {
		search->found(search->op, NULL);
		return;
	}
	sandbox_view(s, &view);
	search->slice = 0;
	op_await(search->op);
	execution_list_ended(search->op->ops->box,
		&(struct execution_filter){.tenant = view.tenant,
			.sandbox_id = view.id,
			.kinds = 1u << EXECUTION_PROCESS,
			.before_ms = search->before_ms,
			.before_id = search->before_id,
			.limit = SEARCH_SLICE},
		search_listed, search);
}

/* ---- in memory ---- */

static struct execution *search_pid(const struct sandbox *s, int64_t pid)
{
	return pid > 0 && pid <= INT32_MAX ? execution_find_pid(s, (int32_t)pid) : NULL;
}

/* Finds it by its pid or its name, which only those have that run. */
static struct execution *search_any(const struct sandbox *s, const char *text)
{
	size_t len = strlen(text);
	if (len < 10 && len > 0 && strspn(text, "0123456789") == len)
		return search_pid(s, strtol(text, NULL, 10));
	return execution_find_name(s, text);
}

static void search_in_sandbox(struct op_search *search)
{
	struct error e;
	const struct execution_ref *ref = &search->ref;
	const struct sandbox *s = op_sandbox(search->op, &e);
	struct execution *x = !s                            ? NULL
			      : ref->by == EXECUTION_BY_PID ? search_pid(s, ref->pid)
							    : execution_find_name(s, ref->text);
	if (x && execution_has_started(x))
		search->found(search->op, x);
	else if (s && search->among_ended)
		search_past(search);
	else
		search->found(search->op, NULL);
}

static void search_again(void *arg, const struct error *e)
{
	struct op_search *search = arg;
	(void)e; /* if its init was given up, the search finds that out */
	if (op_awaited(search->op))
		op_search(search);
}

/* Holds a search for an execution without a sandbox after a restart: init has yet to answer. */
static bool search_is_held(struct op_search *search)
{
	struct op *op = search->op;
	struct sandbox *s =
		op->sandbox ? NULL : execution_awaits(op->ops->box, op->tenant, search->ref.text);
	if (!s || !reconcile_await(s, search_again, search))
		return false;
	op_await(op);
	return true;
}

void op_search(struct op_search *search)
{
	struct error e;
	struct op *op = search->op;
	const struct execution_ref *ref = &search->ref;
	if (ref->by == EXECUTION_BY_PID || ref->by == EXECUTION_BY_NAME) {
		search_in_sandbox(search);
		return;
	}
	struct execution *x = execution_find(op->ops->box, op->tenant, ref->text);
	if (x) {
		search->found(op, search_accepts(search, x) ? x : NULL);
		return;
	}
	if (search_is_held(search))
		return;
	const struct sandbox *s =
		ref->by == EXECUTION_BY_ANY && op->sandbox ? op_sandbox(op, &e) : NULL;
	x = s ? search_any(s, ref->text) : NULL;
	if (x && search_accepts(search, x))
		search->found(op, x);
	else
		search_load(search, op->sandbox, ref->text);
}

void op_fail_missing(struct op *op)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such execution");
	op_fail(op, OP_NO_EXECUTION, &e);
}
