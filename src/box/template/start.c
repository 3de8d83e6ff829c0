#include "box/template/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/mem.h"
#include "box/process/execution.h"
#include "box/sandbox/sandbox.h"

#define TRY_EVERY_MS   200
#define TRY_TIMEOUT_MS 10000
#define TAIL_MAX       200 /* of what a command said last, for the error */

struct starting {
	struct sandbox *sandbox;
	const struct settings *settings;
	bool trial;
	struct execution *command, *attempt;
	struct execution_watcher command_watcher, attempt_watcher;
	uv_timer_t timer;
	int64_t give_up_ms;
	sandbox_done_fn *done;
	void *arg;
};

static void free_starting(uv_handle_t *handle)
{
	free(handle->data);
}

static void start_let_go(struct execution **x, struct execution_watcher *w, bool end)
{
	struct execution *gone = take_ptr(*x);
	if (!gone)
		return;
	if (end && !execution_has_ended(gone))
		execution_cancel(gone);
	execution_unwatch(gone, w);
}

void start_cancel(struct starting *st)
{
	start_let_go(&st->attempt, &st->attempt_watcher, true);
	start_let_go(&st->command, &st->command_watcher, st->trial);
	uv_close((uv_handle_t *)&st->timer, free_starting);
}

static void end(struct starting *st, const struct error *e)
{
	sandbox_done_fn *done = st->done;
	void *arg = st->arg;
	start_cancel(st);
	done(arg, e);
}

/* ---- running ---- */

/* Strings with a NUL each as an array; owned, NULL-terminated. */
static const char **strings_of(const struct buf *list)
{
	size_t count = 0, n = 0;
	for (size_t i = 0; i < list->len; i++)
		count += list->data[i] == '\0';
	const char **strings = mem_new_array(count + 1, sizeof *strings);
	for (size_t at = 0; at < list->len; at += strlen(list->data + at) + 1)
		strings[n++] = list->data + at;
	return strings;
}

/* That of a run must not be taken for the command that it ends with. */
static bool is_listed(const struct starting *st)
{
	return !st->trial && !st->sandbox->ephemeral;
}

static int start_run(struct starting *st, const char *const *argv, bool unlisted,
	int64_t timeout_ms, struct execution **ret, struct error *e)
{
	const struct settings *settings = st->settings;
	autofree const char **env = strings_of(&settings->env);
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

static void last_words(struct execution *x, char out[TAIL_MAX + 4])
{
	autobuf text = {0};
	struct execution_watcher from = {0};
	struct execution_view view;
	execution_view(x, &view);
	out[0] = '\0';
	from.position[1] = view.stored[1] > TAIL_MAX ? view.stored[1] - TAIL_MAX : 0;
	if (!execution_read(x, &from, 1, TAIL_MAX, &text) || text.len == 0)
		return;
	while (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	snprintf(out, TAIL_MAX + 4, ": %.*s", (int)text.len, text.data);
}

static void try_again(uv_timer_t *timer);

static void attempt_changed(void *arg)
{
	struct starting *st = arg;
	struct execution_view view;
	struct error e;
	char said[TAIL_MAX + 4];
	const struct error *refusal = execution_refusal(st->attempt);
	if (!refusal && !execution_has_ended(st->attempt))
		return;
	execution_view(st->attempt, &view);
	if (!refusal && view.status == EXECUTION_COMPLETED && view.exit_code == 0) {
		end(st, NULL);
		return;
	}
	last_words(st->attempt, said);
	start_let_go(&st->attempt, &st->attempt_watcher, false);
	if (clock_wall_ms() < st->give_up_ms && !refusal) {
		uv_timer_start(&st->timer, try_again, TRY_EVERY_MS, 0);
		return;
	}
	error_set(&e, ERROR_NOT_READY, "the start command did not become ready in time%s",
		refusal ? refusal->message : said);
	end(st, &e);
}

static void try_again(uv_timer_t *timer)
{
	struct starting *st = timer->data;
	const char *const argv[] = {"/bin/sh", "-c", st->settings->ready, NULL};
	struct error e;
	if (!st->settings->ready) {
		end(st, NULL);
		return;
	}
	st->attempt_watcher = (struct execution_watcher){.changed = attempt_changed, .arg = st};
	if (start_run(st, argv, true, TRY_TIMEOUT_MS, &st->attempt, &e) < 0)
		end(st, &e);
	else
		execution_watch(st->attempt, &st->attempt_watcher);
}

/* One that goes into the background itself ends well, and that is fine. */
static void start_command_changed(void *arg)
{
	struct starting *st = arg;
	struct execution_view view;
	struct error e;
	char said[TAIL_MAX + 4];
	const struct error *refusal = execution_refusal(st->command);
	if (!refusal && !execution_has_ended(st->command))
		return;
	execution_view(st->command, &view);
	if (!refusal && view.status == EXECUTION_COMPLETED && view.exit_code == 0)
		return;
	last_words(st->command, said);
	error_set(&e, ERROR_NOT_READY, "the start command ended with status %d%s", view.exit_code,
		refusal ? refusal->message : said);
	end(st, &e);
}

struct starting *start_begin(struct sandbox *s, const struct settings *settings, bool trial,
	sandbox_done_fn *done, void *arg, struct error *e)
{
	struct starting *st = calloc(1, sizeof *st);
	autofree const char **argv = strings_of(&settings->start);
	if (!st)
		abort();
	*st = (struct starting){
		.sandbox = s, .settings = settings, .trial = trial, .done = done, .arg = arg};
	st->give_up_ms = clock_wall_ms() + (settings->ready_timeout_ms ? settings->ready_timeout_ms
								       : START_READY_TIMEOUT_MS);
	if (start_run(st, argv, !is_listed(st), 0, &st->command, e) < 0) {
		free(st);
		return NULL;
	}
	st->command_watcher =
		(struct execution_watcher){.changed = start_command_changed, .arg = st};
	execution_watch(st->command, &st->command_watcher);
	uv_timer_init(s->box->loop, &st->timer);
	st->timer.data = st;
	uv_timer_start(&st->timer, try_again, 0, 0);
	return st;
}
