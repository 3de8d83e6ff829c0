/*
 * The frame of all operations: permission, events, end. Only here it is decided whether a caller
 * may have a sandbox (op_locate), and only here hooks are called.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/core/reconcile.h"
#include "box/disk/volume.h"
#include "box/sandbox/turn.h"
#include "op/op_core.h"

static void op_free(struct op *op)
{
	op_timer_stop(&op->deadline);
	op->gone = true;
	if (op->awaits)
		return;
	scratch_finish(&op->memory);
	free(op->sandbox);
	free(op->volume);
	free(op->tenant);
	free(op);
}

void op_await(struct op *op)
{
	op->awaits = true;
}

bool op_awaited(struct op *op)
{
	op->awaits = false;
	if (!op->gone)
		return true;
	op_free(op);
	return false;
}

static void tell_hooks(struct op *op, const struct error *e, bool left)
{
	for (size_t i = 0; i < op->ops->hook_count; i++)
		if (op->ops->hooks[i].ended)
			op->ops->hooks[i].ended(op->ops->hooks[i].arg, &op->summary, e, left);
}

/* ---- the end ---- */

static void op_release(struct op *op, enum op_end end)
{
	if (op->type->release)
		op->type->release(op, end);
}

void op_done(struct op *op, const struct op_event *event)
{
	if (op->over)
		return;
	op->over = true;
	tell_hooks(op, event->kind == OP_FAILED ? event->error : NULL, false);
	op_release(op, OP_ENDED);
	op->event(op->arg, event);
	op_free(op);
}

void op_fail(struct op *op, enum op_reason reason, const struct error *e)
{
	if (op->over)
		return;
	op->failed = true;
	op->reason = reason;
	if (e != &op->failure)
		op->failure = *e;
	if (!op->paused)
		op_done(op, &(struct op_event){
				    .kind = OP_FAILED, .error = &op->failure, .reason = reason});
}

/* Its callback, if it comes at once, finds the operation over. */
static void op_withdraw(struct op *op)
{
	struct error e;
	struct sandbox *s = op->type->withdraws && op->awaits ? op_sandbox(op, &e) : NULL;
	if (s)
		sandbox_withdraw_turn(s, op);
}

static void end_unheard(struct op *op, enum op_end end)
{
	op->over = true;
	tell_hooks(op, op->failed ? &op->failure : NULL, true);
	op_release(op, end);
	op_withdraw(op);
	op_free(op);
}

void op_leave(struct op *op)
{
	end_unheard(op, op->type->outlives_caller ? OP_LEFT : OP_CANCELLED);
}

void op_cancel(struct op *op)
{
	end_unheard(op, OP_CANCELLED);
}

/* ---- telling ---- */

bool op_emit(struct op *op, const struct op_event *event)
{
	if (op->over)
		return false;
	enum op_verdict verdict = op->event(op->arg, event);
	if (verdict == OP_STOP) {
		op_leave(op);
		return false;
	}
	if (event->kind != OP_ROOM && event->kind != OP_REFUSED)
		op->paused = verdict == OP_PAUSE;
	return true;
}

void op_resume(struct op *op)
{
	op->paused = false;
	if (op->awaits)
		return;
	if (op->failed) {
		op_fail(op, op->reason, &op->failure);
	} else if (!op->type->ask) {
		op->type->resume(op);
	} else if (!op->asked) {
		op->asked = true;
		op->type->ask(op);
	}
}

static void deadline_passed(uv_timer_t *timer)
{
	struct op *op = timer->data;
	struct error e = {0};
	error_set(&e, ERROR_REQUEST_TIMEOUT, "the deadline of the call has passed");
	op->paused = false; /* it was the caller's wish not to wait longer */
	op_fail(op, OP_DEADLINE, &e);
}

uv_timer_t *op_timer_start(struct op *op, int64_t ms, uv_timer_cb passed)
{
	uv_timer_t *timer = mem_new(sizeof *timer);
	uv_timer_init(op->ops->loop, timer);
	timer->data = op;
	uv_timer_start(timer, passed, (uint64_t)ms, 0);
	return timer;
}

void op_timer_stop(uv_timer_t **timer)
{
	if (*timer)
		uv_close((uv_handle_t *)*timer, (uv_close_cb)free);
	*timer = NULL;
}

/* ---- input ---- */

void op_put(struct op *op, const struct op_item *item)
{
	if (!op->failed)
		op->type->put(op, item);
}

void op_put_file(struct op *op, const struct file_target *target, const char *content, size_t len)
{
	op_put(op, &(struct op_item){OP_ITEM_FILE, .target = *target});
	op_put(op, &(struct op_item){OP_ITEM_LENGTH, .length = len});
	op_put(op, &(struct op_item){OP_ITEM_DATA, .bytes = {content, len}});
	op_put(op, &(struct op_item){OP_ITEM_FILE_END});
}

size_t op_room(const struct op *op)
{
	return op->failed ? SIZE_MAX : op->type->room(op);
}

/* ---- the begin ---- */

struct sandbox *op_sandbox(const struct op *op, struct error *e)
{
	struct box *b = op->ops->box;
	struct sandbox *s = op->tenant ? sandbox_find(b, op->tenant, op->sandbox)
				       : sandbox_find_any(b, op->sandbox);
	if (!s)
		error_set(e, ERROR_NOT_FOUND, "there is no such sandbox");
	return s;
}

struct volume *op_volume(const struct op *op, struct error *e)
{
	struct box *b = op->ops->box;
	struct volume *v = op->tenant ? volume_find(b, op->tenant, op->volume)
				      : volume_find_any(b, op->volume);
	if (!v)
		error_set(e, ERROR_NOT_FOUND, "volume \"%.64s\" not found", op->volume);
	return v;
}

static bool sandbox_is_usable(const struct sandbox *s)
{
	struct sandbox_view view;
	sandbox_view(s, &view);
	return !view.ending && view.status < SANDBOX_TERMINATED;
}

bool op_has_lost_sandbox(const struct op *op, struct error *e)
{
	const struct sandbox *s = op->sandbox ? op_sandbox(op, e) : NULL;
	if (!op->sandbox || (s && sandbox_is_usable(s)))
		return false;
	error_set(e, ERROR_NOT_FOUND, "there is no such sandbox");
	return true;
}

static bool sandbox_has_metadata(const struct sandbox *s, const char *key)
{
	struct sandbox_view view;
	sandbox_view(s, &view);
	cJSON *metadata = cJSON_Parse(view.metadata);
	bool has = cJSON_GetObjectItemCaseSensitive(metadata, key);
	cJSON_Delete(metadata);
	return has;
}

static bool op_wants(const struct op_call *call, const struct sandbox *s)
{
	struct sandbox_view view;
	sandbox_view(s, &view);
	return (!call->wants_usable || sandbox_lives(&view)) &&
	       (!call->wants_metadata || sandbox_has_metadata(s, call->wants_metadata));
}

static void ended_found(void *arg, const struct sandbox_view *view, const struct error *e)
{
	struct op *op = arg;
	bool ended = view && view->status == SANDBOX_TERMINATED;
	if (!op_awaited(op))
		return;
	if (e)
		op_fail(op, OP_ERROR, e);
	else
		op_fail(op, ended ? OP_SANDBOX_ENDED : OP_NO_SANDBOX, &op->failure);
}

static void past_found(void *arg, const struct sandbox_view *view, const struct error *e)
{
	struct op *op = arg;
	struct error missing;
	if (!op_awaited(op))
		return;
	error_set(&missing, ERROR_NOT_FOUND, "there is no such sandbox");
	if (e)
		op_fail(op, OP_ERROR, e);
	else if (!view)
		op_fail(op, OP_NO_SANDBOX, &missing);
	else if (op->type->past && !op->failed)
		op->type->past(op, view);
	else
		op_resume(op);
}

/* Finds the sandbox for a caller. This is the only place that does. */
static struct sandbox *op_locate(struct op *op, const struct op_call *call)
{
	struct sandbox *s = op_sandbox(op, &op->failure);
	if (s && op_wants(call, s))
		return s;
	if (call->takes_ended) {
		op_await(op);
		sandbox_load_ended(op->ops->box, op->tenant, op->sandbox, past_found, op);
		return NULL;
	}
	error_set(&op->failure, ERROR_NOT_FOUND, "there is no such sandbox");
	op->failed = true;
	op->reason = OP_NO_SANDBOX;
	if (call->asks_for_ended) {
		op_await(op);
		sandbox_load_ended(op->ops->box, op->tenant, op->sandbox, ended_found, op);
	}
	return NULL;
}

static void op_sandbox_found(void *arg, const struct error *e)
{
	struct op *op = arg;
	(void)e; /* if its init was given up, the operation finds that out */
	if (op_awaited(op) && !op->paused)
		op_resume(op);
}

/*
 * Holds the operation after a restart until the sandbox's init has answered: what runs is unknown
 * before.
 */
static void op_hold(struct op *op)
{
	struct error e;
	if (!op->sandbox || op->failed || op->awaits || op->type->early)
		return;
	struct sandbox *s = op_sandbox(op, &e);
	if (s && reconcile_await(s, op_sandbox_found, op))
		op_await(op);
}

static int ask_hooks(struct op *op)
{
	for (size_t i = 0; i < op->ops->hook_count; i++) {
		const struct op_hook *hook = &op->ops->hooks[i];
		if (hook->admit && hook->admit(hook->arg, &op->summary, &op->failure) < 0)
			return -1;
	}
	return 0;
}

struct op *op_new(
	const struct op_call *call, const struct op_type *type, size_t size, struct sandbox **s)
{
	struct op *op = mem_new(size);
	op->type = type;
	op->ops = call->ops;
	op->event = call->event;
	op->arg = call->arg;
	op->paused = true;
	op->memory = call->memory;
	op->sandbox = mem_copy_text(call->sandbox);
	op->volume = mem_copy_text(call->volume);
	op->tenant = mem_copy_text(call->tenant);
	op->summary = (struct op_summary){type->name, type->changes, call->api, call->request,
		op->tenant, op->sandbox, op->volume, clock_monotonic_us()};
	*s = call->sandbox && !call->finds_gone ? op_locate(op, call) : NULL;
	if (call->volume && !op_volume(op, &op->failure)) {
		op->failed = true;
		op->reason = OP_NO_VOLUME;
	}
	if (!op->failed && ask_hooks(op) < 0) {
		op->failed = true;
		*s = NULL;
	}
	op_hold(op);
	if (call->deadline_ms > 0)
		op->deadline = op_timer_start(op, call->deadline_ms, deadline_passed);
	return op;
}

struct op *op_ask(
	const struct op_call *call, const struct op_type *type, const void *request, size_t size)
{
	struct sandbox *s;
	struct op *op = op_new(call, type, sizeof *op + size, &s);
	if (size > 0)
		memcpy(op + 1, request, size);
	return op;
}

const void *op_asked(const struct op *op)
{
	return op + 1;
}

void op_called_back(void *arg, const struct error *e)
{
	struct op *op = arg;
	if (!op_awaited(op))
		return;
	if (e)
		op_fail(op, OP_ERROR, e);
	else
		op_done(op, &(struct op_event){.kind = OP_DONE});
}

static void refused_ask(struct op *op)
{
	op_fail(op, OP_ERROR, &op->failure);
}

struct op *op_refuse(const struct op_call *call, const struct error *e)
{
	static const struct op_type type = {"refused", .ask = refused_ask};
	struct op_call strict = *call;
	strict.finds_gone = false;
	struct op *op = op_ask(&strict, &type, NULL, 0);
	if (!op->failed)
		op->failure = *e;
	return op;
}

void op_has_begun(struct op *op)
{
	scratch_finish(&op->memory);
}

const char *const *op_add_template(
	struct op *op, const struct sandbox *s, const char *variable, const char *const *env)
{
	struct sandbox_view view;
	size_t n = 0;
	if (!variable)
		return env;
	sandbox_view(s, &view);
	while (env && env[n])
		n++;
	size_t size = strlen(variable) + 1 + strlen(view.template_name) + 1;
	char *entry = scratch_alloc(&op->memory, size);
	const char **all = scratch_alloc(&op->memory, (n + 2) * sizeof *all);
	snprintf(entry, size, "%s=%s", variable, view.template_name);
	all[0] = entry;
	if (n > 0)
		memcpy(all + 1, env, n * sizeof *all);
	return all;
}
