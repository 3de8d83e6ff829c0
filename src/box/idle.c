/* When a sandbox's time is up. One timer for all: it fires for the earliest, and looks at everybody
 * then. */
#include "base/clock.h"
#include "base/log.h"
#include "box/core.h"

int64_t sandbox_expires_ms(const struct sandbox *s)
{
	if (s->idle_ms == 0 || s->running > 0 || s->readers > 0 || s->status != SANDBOX_IDLE)
		return 0;
	return s->last_active_ms + s->idle_ms;
}

static void idle_timer_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	int64_t now = clock_wall_ms();
	struct sandbox *s, *next;
	DL_FOREACH_SAFE (b->order, s, next) {
		int64_t expires = sandbox_expires_ms(s);
		if (expires == 0 || expires > now)
			continue;
		log_info("a sandbox was idle for too long", "sandbox", s->id);
		sandbox_destroy(s, NULL, NULL);
	}
	sandbox_check_idle(b);
}

void sandbox_check_idle(struct box *b)
{
	int64_t earliest = 0, now = clock_wall_ms();
	struct sandbox *s;
	if (b->closing)
		return;
	DL_FOREACH (b->order, s) {
		int64_t expires = sandbox_expires_ms(s);
		if (expires && (earliest == 0 || expires < earliest))
			earliest = expires;
	}
	if (earliest == 0)
		uv_timer_stop(&b->idle_timer);
	else
		uv_timer_start(&b->idle_timer, idle_timer_fired,
			earliest > now ? (uint64_t)(earliest - now) : 0, 0);
}
