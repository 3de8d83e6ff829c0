#include "box/template/startup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "box/process/execution.h"
#include "box/sandbox/sandbox.h"

#define TRY_EVERY_MS 200
#define TAIL_MAX     200 /* of what a command said last, for the error */

struct startup {
	struct sandbox *sandbox;
	const struct settings *settings;
	bool trial;
	struct execution *command, *attempt;
	struct execution_watcher command_watcher, attempt_watcher;
	uv_timer_t timer;
	int64_t give_up_ms;
	char said[TAIL_MAX + 4]; /* the last words of a try; the last one of all may have none */
	sandbox_done_fn *done;
	void *arg;
};

static void startup_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void startup_let_go(struct execution **x, struct execution_watcher *w, bool cancels)
{
	struct execution *gone = take_ptr(*x);
	if (!gone)
		return;
	if (cancels && !execution_has_ended(gone))
		execution_cancel(gone);
	execution_unwatch(gone, w);
}

void startup_cancel(struct startup *st)
{
	startup_let_go(&st->attempt, &st->attempt_watcher, true);
	startup_let_go(&st->command, &st->command_watcher, st->trial);
	uv_close((uv_handle_t *)&st->timer, startup_free);
}

static void startup_end(struct startup *st, const struct error *e)
{
	sandbox_done_fn *done = st->done;
	void *arg = st->arg;
	startup_cancel(st);
	done(arg, e);
}

/* ---- running ---- */

/* Strings with a NUL each as an array; owned, NULL-terminated. */
static const char **startup_strings(const struct buf *list)
{
	size_t count = 0, n = 0;
	for (size_t i = 0; i < list->len; i++)
		count += list->data[i] == '\0';
	const char **strings = mem_new_array(count + 1, sizeof *strings);
	for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1)
		strings[n++] = list->data + at;
	return strings;
}

/* The start command of a run must not be mistaken for the command that ends the run. */
static bool startup_is_listed(const struct startup *st)
{
	return !st->trial && !st->sandbox->ephemeral;
}

static int startup_run(struct startup *st, const char *const *argv, bool unlisted,
	int64_t timeout_ms, struct execution **ret, struct error *e)
{
	const struct settings *settings = st->settings;
	autofree const char **env = startup_strings(&settings->env);
	struct execution_spec spec = {
		.argv = argv,
		.name = unlisted ? NULL : "start",
		.kind = EXECUTION_PROCESS,
		.timeout_ms = timeout_ms,
		.unlisted = unlisted,
	};
	if (st->trial) {
		spec.env = env;
		spec.user = settings->user ? settings->user : "user";
		spec.cwd = settings->workdir ? settings->workdir : "";
	}
	return execution_start(st->sandbox, &spec, ret, e);
}

/* Appends what the command wrote to stderr last; leaves `out` unchanged if that was nothing. */
static void startup_last_words(struct execution *x, char out[TAIL_MAX + 4])
{
	autobuf text = {0};
	struct execution_watcher from = {0};
	struct execution_view view;
	execution_view(x, &view);
	from.position[1] = view.stored[1] > TAIL_MAX ? view.stored[1] - TAIL_MAX : 0;
	if (!execution_read(x, &from, 1, TAIL_MAX, &text) || text.len == 0)
		return;
	while (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	snprintf(out, TAIL_MAX + 4, ": %.*s", (int)text.len, text.data);
}

static void startup_try_again(uv_timer_t *timer);

static int64_t startup_time_left_ms(const struct startup *st)
{
	return st->give_up_ms - clock_monotonic_us() / 1000;
}

static void startup_attempt_changed(void *arg)
{
	struct startup *st = arg;
	struct execution_view view;
	struct error e;
	const struct error *refusal = execution_refusal(st->attempt);
	if (!refusal && !execution_has_ended(st->attempt))
		return;
	execution_view(st->attempt, &view);
	if (!refusal && view.status == EXECUTION_COMPLETED && view.exit_code == 0) {
		startup_end(st, NULL);
		return;
	}
	startup_last_words(st->attempt, st->said);
	startup_let_go(&st->attempt, &st->attempt_watcher, false);
	if (startup_time_left_ms(st) > 0 && !refusal) {
		uv_timer_start(&st->timer, startup_try_again, TRY_EVERY_MS, 0);
		return;
	}
	error_set(&e, ERROR_NOT_READY, "the start command did not become ready in time%s",
		refusal ? refusal->message : st->said);
	startup_end(st, &e);
}

/* One try may take all the time that is left: `sleep 20` is a ready command like any other. */
static void startup_try_again(uv_timer_t *timer)
{
	struct startup *st = timer->data;
	const char *const argv[] = {"/bin/sh", "-c", st->settings->ready, NULL};
	int64_t left_ms = startup_time_left_ms(st);
	struct error e;
	if (!st->settings->ready) {
		startup_end(st, NULL);
		return;
	}
	st->attempt_watcher =
		(struct execution_watcher){.changed = startup_attempt_changed, .arg = st};
	if (startup_run(st, argv, true, left_ms > 0 ? left_ms : 1, &st->attempt, &e) < 0)
		startup_end(st, &e);
	else
		execution_watch(st->attempt, &st->attempt_watcher);
}

/* A start command that puts itself into the background ends with 0, which is fine. */
static void startup_command_changed(void *arg)
{
	struct startup *st = arg;
	struct execution_view view;
	struct error e;
	char said[TAIL_MAX + 4] = "";
	const struct error *refusal = execution_refusal(st->command);
	if (!refusal && !execution_has_ended(st->command))
		return;
	execution_view(st->command, &view);
	if (!refusal && view.status == EXECUTION_COMPLETED && view.exit_code == 0)
		return;
	startup_last_words(st->command, said);
	error_set(&e, ERROR_NOT_READY, "the start command ended with status %d%s",
		(int)view.exit_code, refusal ? refusal->message : said);
	startup_end(st, &e);
}

struct startup *startup_begin(struct sandbox *s, const struct settings *settings, bool trial,
	sandbox_done_fn *done, void *arg, struct error *e)
{
	struct startup *st = mem_new(sizeof *st);
	autofree const char **argv = startup_strings(&settings->start);
	*st = (struct startup){
		.sandbox = s, .settings = settings, .trial = trial, .done = done, .arg = arg};
	st->give_up_ms = clock_monotonic_us() / 1000 + (settings->ready_timeout_ms
								       ? settings->ready_timeout_ms
								       : STARTUP_READY_TIMEOUT_MS);
	if (startup_run(st, argv, !startup_is_listed(st), 0, &st->command, e) < 0) {
		free(st);
		return NULL;
	}
	st->command_watcher =
		(struct execution_watcher){.changed = startup_command_changed, .arg = st};
	execution_watch(st->command, &st->command_watcher);
	uv_timer_init(s->box->loop, &st->timer);
	st->timer.data = st;
	uv_timer_start(&st->timer, startup_try_again, 0, 0);
	return st;
}
