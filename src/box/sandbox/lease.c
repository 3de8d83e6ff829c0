/*
 * Deadlines of a sandbox and their consequences.
 *
 *     idle     so long without a command, file work or an open stream
 *     lease    a time of day, whatever runs
 *     paused   so long paused, suspended or failed
 *
 * The first two destroy it, pause it or suspend it, as it was asked for; the last destroys it. One
 * that has failed rests already, so the first two only count where they destroy it.
 * A resume begins the lease anew. Neither a restart nor a pause counts as idleness.
 *
 * One timer serves all. It is set for the earliest deadline of all sandboxes, but fires every 30 s
 * at least: timers stand still while the machine is suspended, leases do not. expiry.c handles it
 * when it fires.
 */
#include "box/sandbox/lease.h"

#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/sandbox/object.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/status.h"

#define LOOK_MS 30000
/* The wall clock may drift or be slewed so far before that counts as a step. */
#define STEP_MS 500

/* ---- the time ---- */

void lease_start_clock(struct box *b)
{
	b->clock.began_ms = clock_wall_ms() - clock_boot_ms();
}

int64_t lease_now_ms(const struct box *b)
{
	return b->clock.began_ms + clock_boot_ms();
}

int64_t lease_wall_ms(const struct box *b, int64_t at_ms)
{
	return at_ms ? at_ms + b->clock.step_ms : 0;
}

void lease_check_clock(struct box *b)
{
	int64_t step = clock_wall_ms() - lease_now_ms(b), moved = step - b->clock.step_ms;
	struct sandbox *s;
	if (b->starting || b->closing || (moved < STEP_MS && moved > -STEP_MS))
		return;
	log_warn("the clock was set", "seconds", log_num(moved / 1000));
	b->clock.step_ms = step;
	DL_FOREACH (b->sandboxes.order, s)
		if (s->known && !s->ending.doomed && (s->lease_end_ms || s->paused_ms))
			sandbox_store(s, s->intent, NULL, NULL);
}

/* ---- what is due ---- */

static void keep_earlier(struct deadline *kept, struct deadline other)
{
	if (other.at_ms && (kept->at_ms == 0 || other.at_ms < kept->at_ms))
		*kept = other;
}

/* With `end_only` what merely pauses it is passed over. */
struct deadline lease_next(const struct sandbox *s, bool end_only)
{
	struct deadline next = {0};
	bool failed = s->status == SANDBOX_FAILED;
	bool rests = failed || s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
	end_only |= failed;
	if (rests && s->paused_timeout_ms)
		next = (struct deadline){
			s->paused_ms + s->paused_timeout_ms, EXPIRY_DESTROY, CAUSE_PAUSED};
	if ((s->status == SANDBOX_IDLE || failed) && s->idle_ms && s->processes.readers == 0 &&
		(!end_only || s->on_idle == EXPIRY_DESTROY))
		keep_earlier(&next,
			(struct deadline){s->last_active_ms + s->idle_ms, s->on_idle, CAUSE_IDLE});
	if ((sandbox_is_awake(s) || failed) && (!end_only || s->on_lease == EXPIRY_DESTROY))
		keep_earlier(&next, (struct deadline){s->lease_end_ms, s->on_lease, CAUSE_LEASE});
	return next;
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
	b->clock.due_ms = 0;
	if (!b->closing && !b->starting)
		b->hooks->clock(b);
}

void lease_set_clock(struct box *b, int64_t at_ms)
{
	int64_t left = at_ms - lease_now_ms(b);
	b->clock.due_ms = at_ms;
	/* Never 0: it is started by its own callback, too, and the loop would never go on. */
	left = left < 1 ? 1 : left > LOOK_MS ? LOOK_MS : left;
	uv_timer_start(&b->clock.timer, clock_fired, (uint64_t)left, 0);
}

void sandbox_clock_changed(struct sandbox *s)
{
	struct box *b = s->box;
	int64_t due = lease_due_ms(s);
	if (due && !b->closing && (b->clock.due_ms == 0 || due < b->clock.due_ms))
		lease_set_clock(b, due);
}

/* ---- the lease ---- */

void sandbox_renew_lease(struct sandbox *s)
{
	s->lease_end_ms = s->lease_ms ? lease_now_ms(s->box) + s->lease_ms : 0;
}
