/*
 * Contexts: their list in the sandbox, their rows in the store, and what is done to them as a
 * whole. A context's row says that it is meant to exist; whether it has an interpreter is for init
 * to say.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/code/code_core.h"

static struct code_context *context_new(struct sandbox *s, const char *id,
	enum code_language language, const struct code_place *place, bool is_default)
{
	struct code_context *c = mem_new(sizeof *c);
	c->sandbox = s;
	memcpy(c->id, id, ID_LEN);
	c->language = language;
	c->cwd = sandbox_copy_string(place->cwd);
	c->user = sandbox_copy_string(place->user);
	c->seen_cwd = sandbox_copy_string(NULL);
	c->is_default = is_default;
	c->created_ms = clock_wall_ms();
	c->message.charged = &s->box->code.bytes;
	DL_APPEND(s->code.contexts, c);
	return c;
}

/* Frees a context whose runs and waiters are gone. */
static void context_free(struct code_context *c)
{
	code_interpreter_detach(c);
	code_message_reset(&c->message);
	buf_finish(&c->in);
	buf_finish(&c->commands);
	free(c->cwd);
	free(c->user);
	free(c->seen_cwd);
	free(c);
}

static void context_remove(struct code_context *c)
{
	DL_DELETE(c->sandbox->code.contexts, c);
	context_free(c);
}

static void code_forget_all(struct sandbox *s)
{
	struct code_context *c, *next;
	struct error e;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox does not run any more");
	DL_FOREACH_SAFE (s->code.contexts, c, next) {
		code_run_lose_all(c);
		code_interpreter_answer(c, &e);
	}
	DL_FOREACH_SAFE (s->code.contexts, c, next)
		context_remove(c);
}

static unsigned context_count(const struct sandbox *s)
{
	const struct code_context *c;
	unsigned count = 0;
	DL_COUNT(s->code.contexts, c, count);
	return count;
}

static struct code_context *made_one(struct code_context *c)
{
	while (c && !c->is_made)
		c = c->next;
	return c;
}

struct code_context *code_context_first(const struct sandbox *s)
{
	return made_one(s->code.contexts);
}

struct code_context *code_context_next(const struct code_context *c)
{
	return made_one(c->next);
}

struct code_context *code_context_find(const struct sandbox *s, const char *id)
{
	struct code_context *c = code_context_first(s);
	while (c && strcmp(c->id, id) != 0)
		c = code_context_next(c);
	return c;
}

const char *code_context_cwd(const struct code_context *c)
{
	if (c->seen_cwd[0])
		return c->seen_cwd;
	if (c->cwd[0])
		return c->cwd;
	return c->sandbox->workdir[0] ? c->sandbox->workdir : "/home/user";
}

void code_context_view(const struct code_context *c, struct code_context_view *out)
{
	const struct code_run *r;
	unsigned runs = 0;
	DL_COUNT(c->runs, r, runs);
	bool is_running = c->runs && c->runs->began;
	*out = (struct code_context_view){
		.id = c->id,
		.language = c->language,
		.cwd = code_context_cwd(c),
		.user = c->user,
		.is_default = c->is_default,
		.status = is_running                          ? CODE_CONTEXT_RUNNING
			  : c->state != CODE_INTERPRETER_NONE ? CODE_CONTEXT_IDLE
							      : CODE_CONTEXT_STOPPED,
		.version = c->version,
		.waiting = runs - is_running,
		.created_ms = c->created_ms,
	};
}

/* ---- rows ---- */

static void store_context(const struct code_context *c, store_done_fn *done, void *arg)
{
	store_put_context(c->sandbox->box->store,
		&(struct context_row){
			.id = c->id,
			.sandbox = c->sandbox->id,
			.language = code_language_name(c->language),
			.cwd = c->cwd,
			.user = c->user,
			.is_default = c->is_default,
			.created_ms = c->created_ms,
		},
		done, arg);
}

static void code_context_add_row(void *arg, const void *found)
{
	const struct context_row *row = found;
	struct sandbox *s = sandbox_find_any(arg, row->sandbox);
	enum code_language language;
	if (!s || !id_is_valid(row->id) || code_language_of(row->language, &language, NULL) < 0)
		return;
	const struct code_place place = {row->cwd, row->user};
	struct code_context *c = context_new(s, row->id, language, &place, row->is_default);
	c->created_ms = row->created_ms;
	c->is_made = true;
}

int code_load(struct box *b)
{
	return store_each_context(b->store, code_context_add_row, b);
}

/* ---- making one ---- */

static int check_room(const struct sandbox *s, struct error *e)
{
	unsigned count = context_count(s);
	if (count < CODE_CONTEXTS_MAX)
		return 0;
	return error_set(e, ERROR_QUOTA_EXCEEDED,
		"the sandbox has %u contexts, the most that is allowed", count);
}

struct making {
	struct box *box;
	struct code_context *context;
	char sandbox[ID_SIZE], id[ID_SIZE];
	code_context_fn *created;
	void *arg;
};

static void made_and_stored(void *arg, int error)
{
	struct making *m = arg;
	struct error e;
	struct sandbox *s = sandbox_find_any(m->box, m->sandbox);
	struct code_context *c = s ? code_context_find(s, m->id) : NULL;
	if (error)
		store_error(&e, error, "the context could not be stored");
	else if (!c)
		error_set(&e, ERROR_NOT_RUNNING, "the sandbox does not run any more");
	m->created(m->arg, error ? NULL : c, error || !c ? &e : NULL);
	free(m);
}

static void code_context_made(void *arg, const struct error *e)
{
	struct making *m = arg;
	if (!e) {
		m->context->is_made = true;
		store_context(m->context, made_and_stored, m);
		return;
	}
	context_remove(m->context);
	m->created(m->arg, NULL, e);
	free(m);
}

static void wait_for(
	struct code_context *c, void (*done)(void *arg, const struct error *e), void *arg)
{
	struct code_waiter *w = mem_new(sizeof *w);
	*w = (struct code_waiter){c->waiters, done, arg};
	c->waiters = w;
}

int code_context_create(struct sandbox *s, enum code_language language,
	const struct code_place *place, code_context_fn *created, void *arg, struct error *e)
{
	char id[ID_SIZE];
	if (check_room(s, e) < 0)
		return -1;
	if (place->cwd && strlen(place->cwd) > CODE_CWD_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "cwd",
			"the working directory is longer than %d bytes", CODE_CWD_MAX);
	id_generate(id);
	struct code_context *c = context_new(s, id, language, place, false);
	if (code_interpreter_start(c, e) < 0) {
		context_remove(c);
		return -1;
	}
	struct making *m = mem_new(sizeof *m);
	*m = (struct making){.box = s->box, .context = c, .created = created, .arg = arg};
	memcpy(m->sandbox, s->id, ID_SIZE);
	memcpy(m->id, id, ID_SIZE);
	wait_for(c, code_context_made, m);
	return 0;
}

struct code_context *code_context_default(
	struct sandbox *s, enum code_language language, const char *user, struct error *e)
{
	const struct code_place place = {.user = user};
	struct code_context *c;
	char id[ID_SIZE];
	DL_FOREACH (s->code.contexts, c)
		if (c->is_default && c->language == language &&
			strcmp(c->user, user ? user : "") == 0)
			return c;
	if (check_room(s, e) < 0)
		return NULL;
	id_generate(id);
	c = context_new(s, id, language, &place, true);
	c->is_made = true;
	store_context(c, NULL, NULL);
	return c;
}

/* ---- what is done to one ---- */

struct deletion {
	void (*done)(void *arg, const struct error *e);
	void *arg;
};

static void row_deleted(void *arg, int error)
{
	struct deletion *d = arg;
	struct error e;
	if (error)
		store_error(&e, error, "that the context is gone could not be stored");
	d->done(d->arg, error ? &e : NULL);
	free(d);
}

void code_context_delete(
	struct code_context *c, void (*done)(void *arg, const struct error *e), void *arg)
{
	struct deletion *d = mem_new(sizeof *d);
	struct error e;
	*d = (struct deletion){done, arg};
	store_delete_context(c->sandbox->box->store, c->id, row_deleted, d);
	code_interpreter_kill(c);
	while (c->runs)
		code_run_fail(c->runs, "ExecutionAborted", "the context was deleted");
	error_set(&e, ERROR_NOT_FOUND, "the context was deleted");
	code_interpreter_answer(c, &e);
	context_remove(c);
}

void code_context_restart(
	struct code_context *c, void (*done)(void *arg, const struct error *e), void *arg)
{
	wait_for(c, done, arg);
	if (c->state == CODE_INTERPRETER_STARTING)
		return;
	c->restarting = true;
	c->died = false;
	code_interpreter_kill(c);
	if (c->runs && c->runs->began)
		code_run_fail(c->runs, "ContextRestarting", "the context was restarted");
	code_run_begin(c);
}

bool code_context_interrupt(struct code_context *c)
{
	if (c->state != CODE_INTERPRETER_BUSY || c->abandoned)
		return false;
	code_interpreter_interrupt(c);
	return true;
}

const struct sandbox_part code_part = {
	.awake = code_awake,
	.free = code_forget_all,
	.interpreter_found = code_interpreter_adopt,
};
