/*
 * An execution's end is told to the watchers at once and written to the store; only after that
 * commit is init told to forget it. Whatever dies in between, the result is still with init or
 * already in the store.
 *
 * It ends when its process has exited and what is kept of its output is here. That waits for no
 * reader: what is beyond is not kept, and stays with init for those who pace it until they have
 * taken it or left. Only then is it forgotten.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/process/execution_core.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/ending.h"
#include "box/sandbox/failure.h"
#include "box/sandbox/hidden.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "box/sandbox/status.h"

/* How late init's answer to a deadline may be. */
#define OVERDUE_MS 30000

/*
 * Removes an execution from its sandbox: its end is stored, and init's copy of its output is not
 * needed.
 */
static void execution_retire(struct execution *x)
{
	struct sandbox *s = x->sandbox;
	if (!x->committed || !execution_is_drained(x))
		return;
	if (s) {
		if (x->in_init) {
			execution_send(x, FRAME_FORGET, 0, 0, NULL, 0);
			execution_flush(x);
		}
		DL_DELETE(s->processes.live, x);
		x->sandbox = NULL;
		if (s->ephemeral && !execution_first(s))
			sandbox_terminate(s, CAUSE_COMPLETED);
	}
	execution_free_if_unused(x);
}

static void ended_and_stored(void *arg, int error, bool is_new)
{
	struct execution *x = arg;
	struct sandbox *s = x->sandbox;
	bool settled = s && x->settling;
	x->settling = false;
	if (error) {
		log_error("an execution's end could not be stored", "execution", x->id);
		x->unstorable = true;
	} else {
		x->committed = true;
		execution_charge_row(x, is_new);
		if (s)
			s->executions -= !is_new; /* it was in the row's number already */
		execution_retire(x);
	}
	if (settled)
		sandbox_settled(s);
}

void execution_retry_ends(struct box *b)
{
	for (struct execution *x = b->processes.by_id; x; x = x->by_id.next) {
		if (!x->unstorable)
			continue;
		x->unstorable = false;
		execution_store(x, ended_and_stored, x);
	}
}

static void count_end(struct box *b, const struct execution *x)
{
	b->counters.executions_running--;
	b->counters.timeouts_total += x->status == EXECUTION_TIMEOUT;
	b->counters.oom_kills_total += x->oom_killed;
}

/* Forgets an unlisted execution: it cannot be asked for again. */
static void forget_unlisted(struct execution *x)
{
	if (x->in_init)
		execution_send(x, FRAME_FORGET, 0, 0, NULL, 0);
	execution_flush(x);
	if (x->sandbox)
		DL_DELETE(x->sandbox->processes.live, x);
	x->sandbox = NULL;
	x->committed = true;
}

void execution_end(struct execution *x, enum execution_status status)
{
	x->status = status;
	buf_finish(&x->input);
	if (x->sandbox)
		execution_count(x, -1);
	if (x->unlisted)
		forget_unlisted(x);
	else
		count_end(x->box, x);
	struct execution_watcher hold = {.changed = NULL};
	DL_PREPEND(x->watchers, &hold);
	for (struct execution_watcher *w = hold.next, *next; w; w = next) {
		next = w->next;
		w->changed(w->arg);
	}
	execution_inspected(x, NULL);
	DL_DELETE(x->watchers, &hold);
	/* Stored after the answer: the store's thread would compete with it for the processor. */
	if (!x->unlisted)
		execution_store(x, ended_and_stored, x);
	execution_free_if_unused(x);
}

static enum execution_status status_of_exit(const struct frame_exit *exit)
{
	if (exit->flags & FRAME_EXIT_TIMED_OUT)
		return EXECUTION_TIMEOUT;
	if (exit->flags & (FRAME_EXIT_KILLED | FRAME_EXIT_STOPPED))
		return EXECUTION_CANCELLED;
	return exit->signal ? EXECUTION_FAILED : EXECUTION_COMPLETED;
}

/* Ends it with the status that a shell would report. */
static void finish_exit(struct execution *x)
{
	enum execution_status status = status_of_exit(&x->exit);
	if (status == EXECUTION_TIMEOUT) {
		x->exit.code = 124;
		x->exit.signal = 0;
	} else if (x->exit.signal) {
		x->exit.code = 128 + x->exit.signal;
	}
	execution_end(x, status);
}

struct oom_question {
	struct box *box;
	uint64_t tag;
	char execution[ID_SIZE];
	char sandbox[ID_SIZE];
};

static void oom_answered(void *arg, const struct warden_reply *reply)
{
	struct oom_question *q = arg;
	struct sandbox *s = sandbox_find_any(q->box, q->sandbox);
	if (!s)
		s = hidden_find(q->box, q->sandbox);
	struct execution *x = s ? execution_find_tag(s, q->tag) : NULL;
	if (s && reply->error == 0 && reply->usage.oom_kills > s->processes.oom_seen) {
		s->processes.oom_seen = reply->usage.oom_kills;
		if (x)
			x->oom_killed = true;
		if (s->listed)
			event_add(s, EVENT_OOM, CAUSE_CALL,
				(struct event_detail[]){
					{"executionId", q->execution}, {NULL, NULL}});
	}
	if (x && !execution_has_ended(x))
		finish_exit(x);
	free(q);
}

/* SIGKILL, seen directly or through a shell, may have come from the kernel: ask who counts. */
static void execution_conclude(struct execution *x)
{
	const struct frame_exit *exit = &x->exit;
	bool ours = exit->flags & (FRAME_EXIT_TIMED_OUT | FRAME_EXIT_KILLED | FRAME_EXIT_STOPPED);
	x->concluded = true;
	if (ours || (exit->signal != SIGKILL && exit->code != 128 + SIGKILL)) {
		/*
		 * A child may have been OOM-killed: that must not be attributed to a later process.
		 */
		if ((int64_t)exit->max_rss_kib * 1024 > x->sandbox->resources.memory / 8)
			sandbox_note_oom(x->sandbox);
		finish_exit(x);
		return;
	}
	struct oom_question *q = mem_new(sizeof *q);
	q->box = x->box;
	q->tag = x->tag;
	memcpy(q->execution, x->id, ID_SIZE);
	memcpy(q->sandbox, x->sandbox_id, ID_SIZE);
	x->box->driver->usage(x->box->driver, x->sandbox_id, oom_answered, q);
}

/* Watchers of an execution that is not kept get all of its output before its end. */
static bool result_is_here(const struct execution *x)
{
	if (x->unlisted)
		return execution_is_drained(x);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		if (!output_is_settled(&x->outputs[i], execution_output_limit(x), x->exit.end[i]))
			return false;
	return true;
}

void execution_output_came(struct execution *x)
{
	if (execution_has_ended(x))
		execution_retire(x);
	else if (x->exited && !x->concluded && result_is_here(x))
		execution_conclude(x);
}

void execution_handle_exit(struct execution *x, const struct frame_exit *exit)
{
	x->exit = *exit;
	x->exited = true;
	execution_output_came(x);
}

/* Readers get the bytes that are kept, and are told that the rest is missing. */
static void execution_cut(struct execution *x)
{
	if (!x->exited || execution_is_drained(x))
		return;
	x->cut = true;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		buf_finish(&x->outputs[i].tail);
		x->outputs[i].end = x->exit.end[i];
	}
	if (execution_has_ended(x))
		execution_notify(x);
}

void execution_end_all(struct sandbox *s, enum execution_status status)
{
	struct execution *x, *next;
	DL_FOREACH_SAFE (s->processes.live, x, next) {
		bool ended = execution_has_ended(x);
		execution_cut(x);
		DL_DELETE(s->processes.live, x);
		x->in_init = false;
		if (!ended) {
			x->exit.code = 128 + SIGKILL;
			x->exit.signal = SIGKILL;
			x->exit.duration_us = (uint64_t)(clock_monotonic_us() - x->began_us);
			execution_count(x, -1);
		}
		x->sandbox = NULL;
		if (ended)
			execution_free_if_unused(x);
		else
			execution_end(x, status);
	}
}

/*
 * By init's clock, which stands still while the machine is suspended. Time in which the sandbox was
 * paused does not count.
 */
static bool is_overdue(const struct execution *x, int64_t awake_us, int64_t now_us)
{
	int64_t since_us = x->began_us > awake_us ? x->began_us : awake_us;
	int64_t past_ms = (now_us - since_us) / 1000;
	if (x->status == EXECUTION_QUEUED)
		return past_ms > OVERDUE_MS;
	return x->status == EXECUTION_RUNNING && x->timeout_ms > 0 &&
	       past_ms > x->timeout_ms + OVERDUE_MS;
}

/* Init can be blocked from inside: stopping a process before its exec stops init with it. */
void execution_check_overdue(struct box *b)
{
	int64_t now_us = clock_monotonic_us();
	struct sandbox *s, *next;
	DL_FOREACH_SAFE (b->sandboxes.order, s, next) {
		const struct execution *x;
		bool overdue = false;
		DL_FOREACH (s->processes.live, x)
			overdue |= is_overdue(x, s->lease.awake_us, now_us);
		if (overdue && !s->turn.taken && sandbox_is_awake(s))
			sandbox_fail(s, "its init does not answer");
	}
}

void execution_refuse_queued(struct sandbox *s, const struct error *e)
{
	struct execution *x, *next;
	DL_FOREACH_SAFE (s->processes.live, x, next) {
		if (x->status != EXECUTION_QUEUED)
			continue;
		x->refusal = *e;
		x->exit.code = 126;
		execution_end(x, EXECUTION_FAILED);
	}
}

void execution_abandon_all(struct sandbox *s)
{
	struct execution *x, *next;
	DL_FOREACH_SAFE (s->processes.live, x, next) {
		DL_DELETE(s->processes.live, x);
		x->sandbox = NULL;
		x->status = execution_has_ended(x) ? x->status : EXECUTION_CANCELLED;
		x->committed = true;
		execution_free_if_unused(x);
	}
}
