/*
 * A context's interpreter: an execution that begins with its first run and lives on between them,
 * and between fronts. What it says is in code_stream.c.
 *
 * A new front does not know what the interpreter is doing. So it is interrupted and asked to
 * answer, and output before its answer is dropped: the clients it was for went with the front that
 * died.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "box/code/code_core.h"
#include "box/sandbox/status.h"

#define START_MS           60000
#define INTERRUPT_AGAIN_MS 700
#define NOT_STARTED        127 /* as its minder says it */

static int64_t now_ms(void)
{
	return clock_monotonic_us() / 1000;
}

/* ---- telling ---- */

void code_interpreter_tell(struct code_context *c)
{
	while (c->commands_sent < c->commands.len) {
		size_t n = execution_input_write(c->execution, c->commands.data + c->commands_sent,
			c->commands.len - c->commands_sent);
		if (n == 0)
			return;
		c->commands_sent += n;
	}
	buf_finish(&c->commands);
	c->commands_sent = 0;
}

static void room_came(void *arg)
{
	code_interpreter_tell(arg);
}

static void send_interrupt(struct code_context *c)
{
	c->interrupting = true;
	c->interrupt_at_ms = now_ms() + INTERRUPT_AGAIN_MS;
	execution_signal(c->execution, SIGINT, false);
}

/*
 * Resends SIGINT until the interpreter acknowledges it: one that arrives before the code has begun
 * is ignored.
 */
void code_interpreter_interrupt(struct code_context *c)
{
	if (c->state != CODE_INTERPRETER_BUSY || c->kill_at_ms)
		return;
	c->kill_at_ms = now_ms() + CODE_INTERRUPT_MS;
	send_interrupt(c);
	code_watch_time(c->sandbox->box);
}

void code_interpreter_kill(struct code_context *c)
{
	if (!c->execution || c->state == CODE_INTERPRETER_ENDING)
		return;
	c->state = CODE_INTERPRETER_ENDING;
	c->kill_at_ms = 0;
	execution_cancel(c->execution);
}

void code_interpreter_fail(struct code_context *c, const char *reason)
{
	snprintf(c->last_words, sizeof c->last_words, "%s", reason);
	code_interpreter_kill(c);
}

/* ---- its end ---- */

void code_interpreter_answer(struct code_context *c, const struct error *e)
{
	struct code_waiter *w = take_ptr(c->waiters), *next;
	for (; w; w = next) {
		next = w->next;
		w->done(w->arg, e);
		free(w);
	}
}

void code_interpreter_detach(struct code_context *c)
{
	struct execution *x = take_ptr(c->execution);
	if (x) {
		execution_unwatch(x, &c->reader);
		execution_unwatch(x, &c->holder);
	}
	c->state = CODE_INTERPRETER_NONE;
	c->interrupting = c->asked = c->asked_out = false;
	c->kill_at_ms = 0;
}

static void describe_end(struct code_context *c)
{
	const struct execution *x = c->execution;
	const char *name = code_language_name(c->language);
	if (x->oom_killed)
		snprintf(c->last_words, sizeof c->last_words,
			"it was killed: the sandbox ran out of memory");
	else if (c->last_words[0] == '\0' && x->exit.code > 128)
		snprintf(c->last_words, sizeof c->last_words, "it was ended by signal %d",
			x->exit.code - 128);
	else if (c->last_words[0] == '\0' && x->exit.code == NOT_STARTED)
		snprintf(c->last_words, sizeof c->last_words,
			"there is no program '%s' in the sandbox, or it cannot run",
			code_language_command(c->language)[0]);
	else if (c->last_words[0] == '\0')
		snprintf(c->last_words, sizeof c->last_words, "%s exited with status %d", name,
			x->exit.code);
}

static void failed_to_start(struct code_context *c, const struct error *refusal)
{
	struct error e;
	if (refusal)
		e = *refusal;
	else
		error_set_field(&e, ERROR_INVALID_FIELD, "language",
			"the %s interpreter could not be started: %s",
			code_language_name(c->language), c->last_words);
	if (c->runs)
		code_run_fail(c->runs, "UnexpectedEndOfExecution", "%s", e.message);
	code_interpreter_answer(c, &e); /* the context may be gone now */
}

/* Delivers the output that has arrived, then ends the run that was under way. */
static void interpreter_ended(struct code_context *c)
{
	const struct error *refused = execution_refusal(c->execution);
	struct error refusal = refused ? *refused : (struct error){0};
	enum code_interpreter_state state = c->state;
	bool lost = c->sandbox->ending.doomed || !sandbox_is_awake(c->sandbox);
	bool run_reads = state == CODE_INTERPRETER_BUSY || state == CODE_INTERPRETER_ENDING;
	while (code_stream_fetch(c))
		;
	describe_end(c);
	code_interpreter_detach(c);
	run_reads = run_reads && !c->abandoned && c->runs && c->runs->began;
	c->abandoned = false;
	if (!run_reads)
		code_stream_forget(c);
	if (lost) {
		code_run_lose_all(c);
		error_set(&refusal, ERROR_NOT_RUNNING, "the sandbox does not run any more");
		code_interpreter_answer(c, &refusal);
	} else if (state == CODE_INTERPRETER_STARTING) {
		failed_to_start(c, refusal.code ? &refusal : NULL);
	} else if (run_reads) {
		c->runs->changed(c->runs->arg);
	} else {
		c->died = state == CODE_INTERPRETER_IDLE;
		memcpy(c->obituary, c->last_words, sizeof c->obituary);
		code_run_begin(c);
	}
}

static void interpreter_changed(void *arg)
{
	struct code_context *c = arg;
	if (execution_has_ended(c->execution))
		interpreter_ended(c);
	else if (c->execution->input_deaf && c->state != CODE_INTERPRETER_ENDING)
		code_interpreter_fail(c, "it closed the descriptor that brings its code");
	else if (code_stream_is_wanted(c))
		c->runs->changed(c->runs->arg);
	else
		code_stream_drain(c);
}

static void nothing_changed(void *arg)
{
	(void)arg;
}

/* ---- its begin ---- */

static void make_key(char out[CODE_KEY_LEN + 1])
{
	unsigned char bytes[CODE_KEY_LEN / 2];
	id_random(bytes, sizeof bytes);
	for (size_t i = 0; i < sizeof bytes; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void code_interpreter_attach(struct code_context *c, struct execution *x, uint64_t position)
{
	code_stream_forget(c);
	c->execution = x;
	c->last_words[0] = '\0';
	c->holder = (struct execution_watcher){
		.changed = nothing_changed, .arg = c, .paced = true, .ignores = {false, true}};
	c->reader = (struct execution_watcher){
		.changed = interpreter_changed, .room = room_came, .arg = c};
	c->holder.position[0] = c->reader.position[0] = position;
	/* The reader behind the holder: it may end both. */
	execution_watch(x, &c->holder);
	execution_watch(x, &c->reader);
}

/* Describes the context for a new front: init is the only one that keeps it. */
static void code_interpreter_describe(const struct code_context *c, char out[128])
{
	snprintf(out, 128, "%s %s", c->id, c->key);
}

/*
 * NULL is the home of the user that it runs as, which init knows. Another user begins in the same
 * place as the sandbox's own.
 */
static const char *code_interpreter_cwd(const struct code_context *c)
{
	bool is_other = c->user[0] && strcmp(c->user, c->sandbox->user) != 0;
	if (c->cwd[0] || !is_other)
		return c->cwd[0] ? c->cwd : NULL;
	return code_context_cwd(c);
}

int code_interpreter_start(struct code_context *c, struct error *e)
{
	char name[128];
	struct execution *x;
	make_key(c->key);
	code_interpreter_describe(c, name);
	const struct execution_spec spec = {
		.argv = code_language_command(c->language),
		.cwd = code_interpreter_cwd(c),
		.user = c->user[0] ? c->user : NULL,
		.name = name,
		.open_stdin = true,
	};
	if (execution_start_interpreter(c->sandbox, &spec, &x, e) < 0)
		return -1;
	code_interpreter_attach(c, x, 0);
	c->state = CODE_INTERPRETER_STARTING;
	c->count = 0;
	c->restarting = false;
	c->kill_at_ms = now_ms() + START_MS;
	code_watch_time(c->sandbox->box);
	code_language_load(c->language, c->key, &c->commands);
	code_interpreter_tell(c);
	return 0;
}

/* ---- after a restart of ours ---- */

static struct code_context *find_described(
	const struct sandbox *s, const char *text, char key[CODE_KEY_LEN + 1])
{
	char id[ID_SIZE];
	if (sscanf(text, "%20s %32s", id, key) != 2 ||
		strspn(key, "0123456789abcdef") != CODE_KEY_LEN)
		return NULL;
	return code_context_find(s, id);
}

void code_interpreter_adopt(struct execution *x)
{
	char key[CODE_KEY_LEN + 1];
	struct code_context *c = find_described(x->sandbox, x->name, key);
	if (!c || c->execution) {
		/* The context was deleted, or its id was never told to a client. */
		execution_cancel(x);
		return;
	}
	memcpy(c->key, key, sizeof c->key);
	code_interpreter_attach(c, x, x->acked[0]);
	c->state = CODE_INTERPRETER_BUSY;
	c->abandoned = c->asked = true;
	code_interpreter_interrupt(c);
}

/* ---- time ---- */

static void interpreter_press(struct code_context *c, int64_t now)
{
	if (c->kill_at_ms && c->kill_at_ms <= now)
		code_interpreter_fail(c, c->state == CODE_INTERPRETER_STARTING
						 ? "it did not begin in time"
						 : "it did not react to an interrupt");
	if (c->kill_at_ms && c->state == CODE_INTERPRETER_BUSY && !c->interrupting &&
		c->interrupt_at_ms <= now)
		send_interrupt(c);
}

static void check_context(struct code_context *c, int64_t now)
{
	struct code_run *r = c->runs;
	if (sandbox_is_awake(c->sandbox))
		interpreter_press(c, now);
	if (r && r->began && r->deadline_ms && r->deadline_ms <= now) {
		code_run_fail(r, "TimeoutError", "the code ran longer than %lld ms",
			(long long)r->timeout_ms);
		code_interpreter_interrupt(c);
		code_stream_drain(c);
	}
}

static void time_came(uv_timer_t *timer)
{
	struct box *b = timer->data;
	struct sandbox *s, *next_sandbox;
	int64_t now = now_ms();
	DL_FOREACH_SAFE (b->sandboxes.order, s, next_sandbox) {
		struct code_context *c, *next;
		DL_FOREACH_SAFE (s->code.contexts, c, next)
			check_context(c, now);
	}
	code_watch_time(b);
}

/* An interpreter whose sandbox stands still cannot heed anything: it is looked at when that wakes.
 */
static int64_t due_ms(const struct code_context *c)
{
	int64_t deadline = c->runs && c->runs->began ? c->runs->deadline_ms : 0;
	int64_t due = sandbox_is_awake(c->sandbox) ? c->kill_at_ms : 0;
	if (due && c->state == CODE_INTERPRETER_BUSY && !c->interrupting &&
		c->interrupt_at_ms < due)
		due = c->interrupt_at_ms;
	return deadline && (!due || deadline < due) ? deadline : due;
}

void code_watch_time(struct box *b)
{
	int64_t earliest = 0, now = now_ms();
	const struct sandbox *s;
	const struct code_context *c;
	if (b->closing)
		return;
	DL_FOREACH (b->sandboxes.order, s) {
		DL_FOREACH (s->code.contexts, c) {
			int64_t due = due_ms(c);
			if (due && (!earliest || due < earliest))
				earliest = due;
		}
	}
	if (earliest == 0)
		uv_timer_stop(&b->code.timer);
	else
		/* Never 0: it is started by its own callback, and the loop would never go on. */
		uv_timer_start(&b->code.timer, time_came,
			earliest > now ? (uint64_t)(earliest - now) : 1, 0);
}

/* Restarts the timers that ran while the sandbox stood still. */
void code_awake(struct sandbox *s)
{
	struct code_context *c;
	int64_t now = now_ms();
	DL_FOREACH (s->code.contexts, c)
		if (c->kill_at_ms && c->kill_at_ms <= now)
			c->kill_at_ms = now + CODE_INTERRUPT_MS;
	code_watch_time(s->box);
}
