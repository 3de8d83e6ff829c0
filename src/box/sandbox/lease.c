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
 * One timer serves all. It is set for the earliest time that anybody has had; what is done when it
 * fires is in expiry.c.
 */
#include "box/sandbox/lease.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/sandbox/object.h"
#include "box/sandbox/status.h"

static void keep_earlier(struct deadline *kept, struct deadline other)
{
	if (other.at_ms && (kept->at_ms == 0 || other.at_ms < kept->at_ms))
		*kept = other;
}

/* With `end_only` what merely pauses it is passed over. */
struct deadline lease_next(const struct sandbox *s, bool end_only)
{
	struct deadline next = {0};
	bool asleep = s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
	if (asleep && s->paused_timeout_ms)
		next = (struct deadline){
			s->paused_ms + s->paused_timeout_ms, EXPIRY_DESTROY, CAUSE_PAUSED};
	if (s->status == SANDBOX_IDLE && s->idle_ms && s->processes.readers == 0 &&
		(!end_only || s->on_idle == EXPIRY_DESTROY))
		keep_earlier(&next,
			(struct deadline){s->last_active_ms + s->idle_ms, s->on_idle, CAUSE_IDLE});
	if (sandbox_is_awake(s) && (!end_only || s->on_lease == EXPIRY_DESTROY))
		keep_earlier(&next, (struct deadline){s->lease_end_ms, s->on_lease, CAUSE_LEASE});
	return next;
}

int64_t sandbox_expires_ms(const struct sandbox *s)
{
	return lease_next(s, false).at_ms;
}

int64_t sandbox_terminates_ms(const struct sandbox *s)
{
	return lease_next(s, true).at_ms;
}

/* ---- the timer ---- */

int64_t lease_due_ms(const struct sandbox *s)
{
	int64_t at = s->ending.doomed || s->lease.expiring ? 0 : lease_next(s, false).at_ms;
	return at && at < s->lease.retry_ms ? s->lease.retry_ms : at;
}

static void clock_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	b->clock_ms = 0;
	if (!b->closing && !b->ready)
		b->hooks->clock(b);
}

void lease_set_clock(struct box *b, int64_t at_ms, int64_t now)
{
	b->clock_ms = at_ms;
	uv_timer_start(&b->clock, clock_fired, at_ms > now ? (uint64_t)(at_ms - now) : 0, 0);
}

void sandbox_clock_changed(struct sandbox *s)
{
	struct box *b = s->box;
	int64_t due = lease_due_ms(s);
	if (due && !b->closing && (b->clock_ms == 0 || due < b->clock_ms))
		lease_set_clock(b, due, clock_wall_ms());
}

/* ---- the lease ---- */

void sandbox_renew_lease(struct sandbox *s)
{
	s->lease_end_ms = s->lease_ms ? clock_wall_ms() + s->lease_ms : 0;
}
