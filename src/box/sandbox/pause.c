/*
 * Pausing and resuming.
 *
 *     with memory      deadlines stand → frozen → row "paused" → told
 *                      thawed → deadlines go on → row "idle" → told
 *     without          disconnected → row "suspended" → every process ended → told
 *                      booted on its disk → row "idle" → told
 *
 * The row decides what a start makes of it after a crash: one that says paused is frozen again, one
 * that says suspended is halted, and any other goes on.
 *
 * A call that finds a sandbox paused wakes it, when that was asked for at its creation: what it
 * sends waits in the connection's buffer, so that it needs no step of its own. However many calls
 * come, one resume serves them all.
 */
#include "box/sandbox/pause.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/connect.h"
#include "box/sandbox/halt.h"
#include "box/sandbox/later.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"
#include "box/sandbox/turn.h"

/* How long init may take to say that its deadlines stand; a busy one is frozen without. */
#define STILL_TIMEOUT_MS 1000

/* One pause or resume under way. */
struct pause_work {
	struct sandbox *sandbox;
	bool keep_memory;
	enum event_cause cause;
	sandbox_done_fn *done; /* may be NULL */
	void *arg;
	int refusal; /* the store's error */
	uv_timer_t patience;
};

static void pause_work_free(uv_handle_t *handle)
{
	free(handle->data);
}

static struct pause_work *pause_work_new(struct sandbox *s, bool keep_memory,
	enum event_cause cause, sandbox_done_fn *done, void *arg)
{
	struct pause_work *m = mem_new(sizeof *m);
	m->sandbox = s;
	m->keep_memory = keep_memory;
	m->cause = cause;
	m->done = done;
	m->arg = arg;
	uv_timer_init(s->box->loop, &m->patience);
	m->patience.data = m;
	return m;
}

static void pause_work_answer(struct pause_work *m, const struct error *e)
{
	if (m->done)
		box_answer_later(m->sandbox->box, m->done, m->arg, e);
	uv_close((uv_handle_t *)&m->patience, pause_work_free);
}

/* The answer goes out before the next one has its turn: it tells what this one did. */
static void pause_work_end(struct pause_work *m, const struct error *e)
{
	struct sandbox *s = m->sandbox;
	pause_work_answer(m, e);
	sandbox_release(s);
}

static void send_to_init(struct sandbox *s, enum frame_type type)
{
	if (!s->init.link)
		return;
	frame_append(init_link_buffer(s->init.link), type, 0, 0, 0, NULL, 0);
	init_link_flush(s->init.link);
}

static int refuse_failed(const struct sandbox *s, struct error *e)
{
	if (s->status == SANDBOX_FAILED)
		return error_set(e, ERROR_NOT_RUNNING, "the sandbox has failed: %s", s->failure);
	return error_set(e, ERROR_NOT_RUNNING, "the sandbox is not running");
}

/* ---- with memory ---- */

static void reclaim_asked(void *arg, const struct warden_reply *reply)
{
	(void)reply;
	box_check_closed(arg);
}

static void pause_undone(void *arg, const struct error *e)
{
	struct pause_work *m = arg;
	struct sandbox *s = m->sandbox;
	struct error reason;
	(void)e;
	s->pause.pausing = false;
	s->paused_ms = 0;
	s->intent = SANDBOX_IDLE; /* as its row still says */
	send_to_init(s, FRAME_RESUME);
	store_error(&reason, m->refusal, "the pause could not be stored");
	pause_work_end(m, &reason);
}

static void pause_stored(void *arg, int error)
{
	struct pause_work *m = arg;
	struct sandbox *s = m->sandbox;
	m->refusal = error;
	if (error) {
		sandbox_thaw(s, pause_undone, m);
		return;
	}
	sandbox_set_status(s, SANDBOX_PAUSED);
	s->box->driver->reclaim(s->box->driver, s->id, reclaim_asked, s->box);
	sandbox_clock_changed(s);
	pause_work_end(m, NULL);
}

static void pause_frozen(void *arg, const struct error *e)
{
	struct pause_work *m = arg;
	struct sandbox *s = m->sandbox;
	if (e || !sandbox_is_awake(s)) {
		struct error reason;
		s->pause.pausing = false;
		send_to_init(s, FRAME_RESUME);
		if (!e)
			refuse_failed(s, &reason);
		pause_work_end(m, e ? e : &reason);
		return;
	}
	s->paused_ms = lease_now_ms(s->box);
	event_add(s, EVENT_PAUSED, m->cause, NULL);
	sandbox_store(s, SANDBOX_PAUSED, pause_stored, m);
}

static void pause_freeze(struct pause_work *m)
{
	m->sandbox->pause.work = NULL;
	uv_timer_stop(&m->patience);
	sandbox_freeze(m->sandbox, pause_frozen, m);
}

static void pause_patience_over(uv_timer_t *timer)
{
	pause_freeze(timer->data);
}

/* Init has said that its deadlines stand. */
static bool pause_frame(struct sandbox *s, const struct frame_header *h, const char *payload)
{
	(void)payload;
	if (h->type == FRAME_PAUSED && s->pause.work)
		pause_freeze(s->pause.work);
	return h->type == FRAME_PAUSED;
}

const struct sandbox_part pause_part = {.frame = pause_frame};

/* Timeouts of commands stand still with them: init notes the time, and says so. */
static void pause_with_memory(struct pause_work *m)
{
	m->sandbox->pause.pausing = true;
	m->sandbox->pause.work = m;
	uv_timer_start(&m->patience, pause_patience_over, STILL_TIMEOUT_MS, 0);
	send_to_init(m->sandbox, FRAME_PAUSE);
}

/* ---- without ---- */

static void suspend_halted(void *arg, const struct error *e)
{
	struct pause_work *m = arg;
	struct error reason;
	(void)e;
	sandbox_set_status(m->sandbox, SANDBOX_SUSPENDED);
	tenant_force_charge(m->sandbox, CHARGE_DISK);
	sandbox_clock_changed(m->sandbox);
	if (m->refusal)
		store_error(&reason, m->refusal, "the pause could not be stored");
	pause_work_end(m, m->refusal ? &reason : NULL);
}

static void suspend_stored(void *arg, int error)
{
	struct pause_work *m = arg;
	m->refusal = error;
	sandbox_halt(m->sandbox, suspend_halted, m);
}

/* Later calls wait for the next boot. */
static void pause_suspend(struct pause_work *m)
{
	struct sandbox *s = m->sandbox;
	s->pause.pausing = true;
	if (s->paused_ms == 0)
		s->paused_ms = lease_now_ms(s->box);
	sandbox_set_status(s, SANDBOX_STOPPING);
	sandbox_disconnect(s);
	event_add(s, EVENT_SUSPENDED, m->cause, NULL);
	sandbox_store(s, SANDBOX_SUSPENDED, suspend_stored, m);
}

static void pause_has_turn(void *arg, struct sandbox *s, const struct error *e)
{
	struct pause_work *m = arg;
	struct error reason;
	if (e) {
		pause_work_answer(m, e);
	} else if (sandbox_is_awake(s)) {
		if (m->keep_memory)
			pause_with_memory(m);
		else
			pause_suspend(m);
	} else if (s->status == SANDBOX_PAUSED && !m->keep_memory) {
		pause_suspend(m);
	} else if (s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED) {
		pause_work_end(m, NULL);
	} else {
		refuse_failed(s, &reason);
		pause_work_end(m, &reason);
	}
}

void sandbox_pause_because(struct sandbox *s, bool keep_memory, enum event_cause cause,
	sandbox_done_fn *done, void *arg)
{
	sandbox_take_turn(s, pause_has_turn, pause_work_new(s, keep_memory, cause, done, arg));
}

void sandbox_pause(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg)
{
	sandbox_pause_because(s, keep_memory, CAUSE_REQUEST, done, arg);
}

/* ---- resume ---- */

/* Fails the calls that wait for it to wake. */
static void resume_failed(struct pause_work *m, const struct error *e)
{
	struct sandbox *s = m->sandbox;
	s->pause.waking = false;
	if (s->status == SANDBOX_SUSPENDED)
		tenant_force_charge(s, CHARGE_DISK);
	sandbox_parts_refused(s, e);
	if (!s->pause.frozen) {
		init_link_close(s->init.link);
		s->init.link = NULL;
	}
	pause_work_end(m, e);
}

static void resume_stored(void *arg, int error)
{
	struct pause_work *m = arg;
	struct error e;
	/* The sandbox is awake; only a crash now would find it paused. */
	if (error)
		store_error(&e, error, "the resume could not be stored");
	pause_work_end(m, error ? &e : NULL);
}

static void pause_resumed(struct pause_work *m)
{
	struct sandbox *s = m->sandbox;
	s->pause.waking = false;
	s->failure[0] = '\0';
	sandbox_renew_lease(s);
	sandbox_set_awake(s);
	event_add(s, EVENT_RESUMED, m->cause, NULL);
	sandbox_parts_awake(s);
	sandbox_store(s, SANDBOX_IDLE, resume_stored, m);
}

static void resume_anew(struct pause_work *m);

static void resume_connected(void *arg, struct sandbox *s, int error)
{
	struct pause_work *m = arg;
	struct error e;
	if (error == 0) {
		send_to_init(s, FRAME_RESUME);
		pause_resumed(m);
		return;
	}
	/* The processes are lost, as in a reboot: the sandbox goes on with its disk. */
	error_set(&e, ERROR_UNAVAILABLE, "the sandbox has lost its memory and is being booted");
	event_add(s, EVENT_FAILED, CAUSE_CRASH,
		(struct event_detail[]){{"reason", "its memory was lost"}, {NULL, NULL}});
	sandbox_parts_refused(s, &e);
	resume_anew(m);
}

static void resume_thawed(void *arg, const struct error *e)
{
	struct pause_work *m = arg;
	struct sandbox *s = m->sandbox;
	if (e)
		resume_connected(m, s, -1);
	else if (!s->init.link || !init_link_is_connected(s->init.link))
		sandbox_connect(s, resume_connected, m);
	else
		resume_connected(m, s, 0);
}

static void resume_booted(void *arg, const struct error *e)
{
	struct pause_work *m = arg;
	struct sandbox *s = m->sandbox;
	if (e) {
		resume_failed(m, e);
		return;
	}
	event_add(s, EVENT_STARTED, m->cause,
		(struct event_detail[]){{"bootId", s->boot_id}, {NULL, NULL}});
	pause_resumed(m);
}

static void resume_refused(void *arg, const struct error *e)
{
	resume_failed(arg, e);
}

/* Refused only later: the call that it is woken for has yet to join those that wait. */
static void resume_boot(struct pause_work *m)
{
	struct sandbox *s = m->sandbox;
	struct error e;
	if (tenant_charge(s, CHARGE_ALL, &e) < 0)
		box_answer_later(s->box, resume_refused, m, &e);
	else
		sandbox_boot(s, true, resume_booted, m);
}

static void resume_halted(void *arg, const struct error *e)
{
	struct pause_work *m = arg;
	(void)e;
	sandbox_set_status(m->sandbox, SANDBOX_SUSPENDED);
	resume_boot(m);
}

static void resume_anew(struct pause_work *m)
{
	sandbox_set_status(m->sandbox, SANDBOX_STOPPING);
	sandbox_disconnect(m->sandbox);
	sandbox_halt(m->sandbox, resume_halted, m);
}

static void resume_has_turn(void *arg, struct sandbox *s, const struct error *e)
{
	struct pause_work *m = arg;
	struct error reason;
	if (e) {
		if (m->cause == CAUSE_CALL) {
			s->pause.waking = false;
			sandbox_parts_refused(s, e);
		}
		pause_work_answer(m, e);
	} else if (sandbox_is_awake(s)) {
		s->pause.waking = false;
		sandbox_parts_awake(s);
		pause_work_end(m, NULL);
	} else if (s->status == SANDBOX_PAUSED && m->keep_memory) {
		sandbox_thaw(s, resume_thawed, m);
	} else if (s->status == SANDBOX_PAUSED || s->status == SANDBOX_FAILED) {
		resume_anew(m); /* of a failed one, too, something may be left */
	} else if (s->status == SANDBOX_SUSPENDED) {
		resume_boot(m);
	} else {
		refuse_failed(s, &reason);
		resume_failed(m, &reason);
	}
}

void sandbox_resume(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg)
{
	sandbox_take_turn(
		s, resume_has_turn, pause_work_new(s, keep_memory, CAUSE_REQUEST, done, arg));
}

int sandbox_wake(struct sandbox *s, struct error *e)
{
	bool asleep =
		s->pause.pausing || s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
	if (s->ending.doomed || s->status == SANDBOX_FAILED || (!asleep && !s->init.link))
		return refuse_failed(s, e);
	if (!asleep) {
		usage_stir(s);
		return 0;
	}
	if (!s->auto_resume)
		return error_set(e, ERROR_PAUSED,
			"the sandbox is paused, and was not asked to wake by itself");
	if (!s->init.link)
		s->init.link = sandbox_link_new(s);
	if (!s->pause.waking) {
		struct pause_work *m = pause_work_new(s, true, CAUSE_CALL, NULL, NULL);
		s->pause.waking = true;
		sandbox_take_turn(s, resume_has_turn, m);
		if (!s->pause.waking && !sandbox_is_awake(s))
			return error_set(e, ERROR_RESOURCE_EXHAUSTED,
				"too many operations wait for this sandbox already");
	}
	return 0;
}
