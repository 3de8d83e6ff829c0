#include "egress/limit.h"

#include <stddef.h>
#include <sys/epoll.h>

#define UNIT       1000
#define LONGEST_MS (60 * 1000) /* to fill, so that numbers stay small */

int64_t limit_left(struct limit *l, const struct limit_rate *rate, int64_t now_ms)
{
	int64_t passed = now_ms - l->filled_ms, full = rate->burst * UNIT;
	if (l->filled_ms == 0)
		l->thousandths = full;
	else if (passed > 0)
		l->thousandths += rate->per_second * (passed < LONGEST_MS ? passed : LONGEST_MS);
	if (l->thousandths > full)
		l->thousandths = full;
	l->filled_ms = now_ms;
	return l->thousandths > 0 ? l->thousandths / UNIT : 0;
}

void limit_use(struct limit *l, int64_t tokens)
{
	l->thousandths -= tokens * UNIT;
}

bool limit_take(struct limit *l, const struct limit_rate *rate, int64_t now_ms)
{
	if (limit_left(l, rate, now_ms) == 0)
		return false;
	limit_use(l, 1);
	return true;
}

void limit_rest(const struct source *s, bool *resting)
{
	epoll_ctl(loop.epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	*resting = true;
}
