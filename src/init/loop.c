/*
 * The epoll loop. A source may be closed from any callback: events that were already fetched for it
 * are dropped, because its descriptor is checked again before each call.
 */
#include "init/init.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

static int loop_fd = -1;
static struct epoll_event loop_batch[32];
static int loop_batch_len;

void loop_open(void)
{
	loop_fd = epoll_create1(EPOLL_CLOEXEC);
	assert(loop_fd >= 0 && "init has nothing else to do");
}

static int loop_timeout_ms(int64_t deadline_us)
{
	if (deadline_us == 0)
		return -1;
	int64_t wait_us = deadline_us - clock_monotonic_us();
	if (wait_us <= 0)
		return 0;
	int64_t wait_ms = wait_us / 1000 + 1;
	return wait_ms > 3600000 ? 3600000 : (int)wait_ms;
}

void loop_run_once(int64_t deadline_us)
{
	int n = epoll_wait(
		loop_fd, loop_batch, ARRAY_LEN(loop_batch), loop_timeout_ms(deadline_us));
	loop_batch_len = n < 0 ? 0 : n;
	for (int i = 0; i < loop_batch_len; i++) {
		struct source *s = loop_batch[i].data.ptr;
		if (s)
			s->ready(s, loop_batch[i].events);
	}
	loop_batch_len = 0;
}

int loop_watch(struct source *s, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = s};
	if (s->events == events)
		return 0;
	/* A source without events leaves the set: EPOLLHUP cannot be masked and would spin. */
	int op = events == 0 ? EPOLL_CTL_DEL : s->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
	if (epoll_ctl(loop_fd, op, s->fd, &ev) < 0)
		return -errno;
	s->events = events;
	return 0;
}

void loop_close(struct source *s)
{
	if (s->fd < 0)
		return;
	loop_watch(s, 0);
	for (int i = 0; i < loop_batch_len; i++)
		if (loop_batch[i].data.ptr == s)
			loop_batch[i].data.ptr = NULL;
	close(s->fd);
	s->fd = -1;
}
