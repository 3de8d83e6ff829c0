/*
 * Runs. Runs of one context are queued; the first is under way once the interpreter has been told
 * of it. A run ends when its interpreter says so, when its interpreter dies, or when its caller
 * cancels it: then the interpreter is interrupted, and its remaining output is dropped.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "box/code/code_core.h"
#include "box/sandbox/pause.h"

/* ---- the queue ---- */

static void code_run_join(struct code_run *r, struct code_context *c)
{
	r->context = c;
	DL_APPEND(c->runs, r);
	sandbox_execution_began(c->sandbox);
}

static void code_run_leave(struct code_run *r)
{
	struct code_context *c = take_ptr(r->context);
	DL_DELETE(c->runs, r);
	buf_finish(&r->code);
	buf_finish(&r->env);
	sandbox_execution_ended(c->sandbox);
}

static void code_run_tell_interpreter(struct code_run *r);

void code_run_begin(struct code_context *c)
{
	struct code_run *r = c->runs;
	struct error e = {0};
	bool wanted = c->restarting || (r && !r->began);
	if (!wanted)
		return;
	if (c->state == CODE_INTERPRETER_NONE) {
		if (code_interpreter_start(c, &e) == 0)
			return;
		c->restarting = false;
		if (r)
			code_run_fail(r, "UnexpectedEndOfExecution", "%s", e.message);
		code_interpreter_answer(c, &e);
		return;
	}
	if (c->state == CODE_INTERPRETER_IDLE && !c->interrupting && !c->restarting) {
		code_run_tell_interpreter(r);
		r->changed(r->arg);
	}
}

static void code_run_tell_interpreter(struct code_run *r)
{
	struct code_context *c = r->context;
	r->began = true;
	c->count++;
	r->deadline_ms = r->timeout_ms ? clock_monotonic_us() / 1000 + r->timeout_ms : 0;
	c->state = CODE_INTERPRETER_BUSY;
	code_language_run(c->language, r, &c->commands);
	buf_finish(&r->code);
	code_interpreter_tell(c);
	if (r->deadline_ms)
		code_watch_time(c->sandbox->box);
}

void code_run_finish(struct code_context *c)
{
	struct code_run *r = c->runs;
	r->ended = true;
	code_run_leave(r);
}

/* The interpreter, if it has begun with it, does not know that yet. */
static void give_up(struct code_run *r)
{
	struct code_context *c = r->context;
	bool in_interpreter = r->began && c->execution;
	r->ended = true;
	code_run_leave(r);
	if (in_interpreter)
		c->abandoned = true;
}

void code_run_fail(struct code_run *r, const char *name, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(r->error_value, sizeof r->error_value, format, args);
	va_end(args);
	r->error_name = name;
	give_up(r);
	r->changed(r->arg);
}

void code_run_lose_all(struct code_context *c)
{
	struct code_run *r;
	while ((r = c->runs)) {
		r->lost = true;
		give_up(r);
		r->changed(r->arg);
	}
}

/* ---- for those who ask ---- */

static int check_code(const struct code_run_spec *spec, struct error *e)
{
	size_t variables = 0;
	while (spec->env && spec->env[variables])
		variables++;
	if (spec->code_len > CODE_TEXT_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "code",
			"the code is longer than %u bytes", CODE_TEXT_MAX);
	if (memchr(spec->code, '\0', spec->code_len))
		return error_set_field(e, ERROR_INVALID_FIELD, "code", "the code has a NUL in it");
	if (variables > CODE_VARIABLES)
		return error_set_field(e, ERROR_INVALID_FIELD, "env",
			"there are more than %d variables", CODE_VARIABLES);
	return 0;
}

int code_run_start(struct code_context *c, const struct code_run_spec *spec,
	void (*changed)(void *arg), void *arg, struct code_run **ret, struct error *e)
{
	const struct code_run *each;
	unsigned waiting = 0;
	DL_COUNT(c->runs, each, waiting);
	if (check_code(spec, e) < 0 || sandbox_wake(c->sandbox, e) < 0)
		return -1;
	if (waiting >= CODE_QUEUE_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"%u runs wait in the context, the most that is allowed", waiting);
	struct code_run *r = mem_new(sizeof *r);
	buf_append(&r->code, spec->code, spec->code_len);
	for (const char *const *v = spec->env; v && *v; v++)
		buf_append(&r->env, *v, strlen(*v) + 1);
	r->timeout_ms = spec->timeout_ms;
	r->changed = changed;
	r->arg = arg;
	code_run_join(r, c);
	if (c->runs == r && c->state == CODE_INTERPRETER_NONE && code_interpreter_start(c, e) < 0) {
		code_run_leave(r);
		free(r);
		return -1;
	}
	if (c->runs == r && c->state == CODE_INTERPRETER_IDLE && !c->interrupting)
		code_run_tell_interpreter(r);
	*ret = r;
	return 0;
}

static bool code_run_put_error(struct code_run *r, struct code_event *ret)
{
	*ret = (struct code_event){.type = CODE_EVENT_ERROR, .field_count = 3};
	ret->fields[0] = (struct code_field){r->error_name, strlen(r->error_name)};
	ret->fields[1] = (struct code_field){r->error_value, strlen(r->error_value)};
	ret->fields[2] = (struct code_field){r->error_value, strlen(r->error_value)};
	r->error_told = true;
	return true;
}

static bool code_run_put_end(const struct code_run *r, struct code_event *ret)
{
	*ret = (struct code_event){.type = r->lost ? CODE_EVENT_LOST : CODE_EVENT_END};
	return true;
}

/*
 * Tells on stderr that the interpreter died while it was idle: the new one has none of its
 * variables.
 */
static bool put_note(struct code_run *r, struct code_event *ret)
{
	struct code_context *c = r->context;
	c->died = false;
	snprintf(r->error_value, sizeof r->error_value,
		"the interpreter had ended since the last run (%.120s); this is a new one\n",
		c->obituary);
	*ret = (struct code_event){.type = CODE_EVENT_STDERR, .field_count = 1};
	ret->fields[0] = (struct code_field){r->error_value, strlen(r->error_value)};
	return true;
}

static bool put_count(struct code_run *r, struct code_event *ret)
{
	*ret = (struct code_event){.type = CODE_EVENT_COUNT, .count = r->context->count};
	r->count_told = true;
	return true;
}

static bool next_of_interpreter(struct code_run *r, struct code_event *ret)
{
	struct code_context *c = r->context;
	if (!r->began)
		return false;
	if (!r->count_told)
		return put_count(r, ret);
	if (c->died)
		return put_note(r, ret);
	if (code_stream_next(c, ret))
		return true;
	if (r->ended || c->execution)
		return false;
	/* The interpreter is gone, and this was the last that it said. */
	r->error_name = "UnexpectedEndOfExecution";
	snprintf(r->error_value, sizeof r->error_value,
		"the interpreter ended before the code did: %.120s. The next run has a new one",
		c->last_words);
	give_up(r);
	code_run_begin(c);
	return false;
}

bool code_run_next(struct code_run *r, struct code_event *ret)
{
	if (!r->ended && next_of_interpreter(r, ret))
		return true;
	if (!r->ended)
		return false;
	return r->error_name && !r->error_told ? code_run_put_error(r, ret)
					       : code_run_put_end(r, ret);
}

void code_run_close(struct code_run *r)
{
	struct code_context *c = r->context;
	if (!r->ended) {
		give_up(r);
		if (c->abandoned)
			code_interpreter_interrupt(c);
		code_stream_drain(c);
		code_run_begin(c);
	}
	buf_finish(&r->code);
	buf_finish(&r->env);
	free(r);
}
