/*
 * When a sandbox's time is up, and what then.
 *
 *     idle     so long without a command, file work or an open stream
 *     lease    a time of day, whatever runs
 *     paused   so long paused or suspended
 *
 * The first two destroy it, pause it or suspend it, as it was asked for; the last destroys it.
 * A resume begins the lease anew. Neither a restart nor a pause counts as idleness.
 *
 * One timer serves all. It is set for the earliest time that anybody has had; when it fires for one
 * who has meanwhile got more time, everybody is looked at, and it is set again.
 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/sandbox/core.h"

/* A pause that did not work is tried again after this. */
#define RETRY_MS 5000

struct deadline {
	int64_t at_ms; /* 0: never */
	enum sandbox_expiry then;
	enum event_cause cause;
};

static void keep_earlier(struct deadline *kept, struct deadline other)
{
	if (other.at_ms && (kept->at_ms == 0 || other.at_ms < kept->at_ms))
		*kept = other;
}

/* With `end_only` what merely pauses it is passed over. */
static struct deadline next_deadline(const struct sandbox *s, bool end_only)
{
	struct deadline next = {0};
	bool asleep = s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
	if (asleep && s->paused_timeout_ms)
		next = (struct deadline){
			s->paused_ms + s->paused_timeout_ms, EXPIRY_DESTROY, CAUSE_PAUSED};
	if (s->status == SANDBOX_IDLE && s->idle_ms && s->readers == 0 &&
		(!end_only || s->on_idle == EXPIRY_DESTROY))
		keep_earlier(&next,
			(struct deadline){s->last_active_ms + s->idle_ms, s->on_idle, CAUSE_IDLE});
	if (sandbox_is_awake(s) && (!end_only || s->on_lease == EXPIRY_DESTROY))
		keep_earlier(&next, (struct deadline){s->lease_end_ms, s->on_lease, CAUSE_LEASE});
	return next;
}

int64_t sandbox_expires_ms(const struct sandbox *s)
{
	return next_deadline(s, false).at_ms;
}

int64_t sandbox_terminates_ms(const struct sandbox *s)
{
	return next_deadline(s, true).at_ms;
}

/* ---- the timer ---- */

static int64_t due_ms(const struct sandbox *s)
{
	int64_t at = s->doomed || s->expiring ? 0 : next_deadline(s, false).at_ms;
	return at && at < s->retry_ms ? s->retry_ms : at;
}

struct expired {
	struct box *box;
	char id[ID_SIZE];
};

static void pause_ended(void *arg, const struct error *e)
{
	struct expired *x = arg;
	struct sandbox *s = sandbox_find_any(x->box, x->id);
	if (s) {
		s->expiring = false;
		s->retry_ms = e ? clock_wall_ms() + RETRY_MS : 0;
		sandbox_clock_changed(s);
	}
	if (e)
		log_warn("a sandbox whose time is up could not be paused", "sandbox", x->id,
			"error", e->message);
	free(x);
}

static void expire(struct sandbox *s)
{
	struct deadline d = next_deadline(s, false);
	log_info("a sandbox's time is up", "sandbox", s->id, "cause", event_cause_name(d.cause),
		"then", sandbox_expiry_names[d.then]);
	if (d.then == EXPIRY_DESTROY) {
		sandbox_terminate(s, d.cause);
		return;
	}
	struct expired *x = malloc(sizeof *x);
	if (!x)
		abort();
	x->box = s->box;
	memcpy(x->id, s->id, ID_SIZE);
	s->expiring = true;
	sandbox_pause_because(s, d.then == EXPIRY_PAUSE, d.cause, pause_ended, x);
}

static void clock_fired(uv_timer_t *timer);

static void set_clock(struct box *b, int64_t at_ms, int64_t now)
{
	b->clock_ms = at_ms;
	uv_timer_start(&b->clock, clock_fired, at_ms > now ? (uint64_t)(at_ms - now) : 0, 0);
}

static void clock_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	int64_t now = clock_wall_ms(), earliest = 0;
	struct sandbox *s, *next;
	b->clock_ms = 0;
	if (b->closing || b->ready)
		return;
	DL_FOREACH_SAFE (b->order, s, next) {
		int64_t due = due_ms(s);
		if (due && due <= now)
			expire(s);
		else if (due && (earliest == 0 || due < earliest))
			earliest = due;
	}
	if (earliest && (b->clock_ms == 0 || earliest < b->clock_ms))
		set_clock(b, earliest, now);
}

void sandbox_clock_changed(struct sandbox *s)
{
	struct box *b = s->box;
	int64_t due = due_ms(s);
	if (due && !b->closing && (b->clock_ms == 0 || due < b->clock_ms))
		set_clock(b, due, clock_wall_ms());
}

/* ---- the lease ---- */

void sandbox_renew_lease(struct sandbox *s)
{
	s->lease_end_ms = s->lease_ms ? clock_wall_ms() + s->lease_ms : 0;
}
