#include "stream/loop.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/mem.h"

#define EVENTS_MAX 256

struct loop loop;

static void **dead;
static size_t dead_count, dead_size;

int loop_open(void)
{
	loop.now_ms = clock_monotonic_us() / 1000;
	loop.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop.epoll_fd < 0 ? -errno : 0;
}

int loop_add(struct source *s, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = s};
	if (epoll_ctl(loop.epoll_fd, EPOLL_CTL_ADD, s->fd, &event) == 0)
		return 0;
	int r = -errno;
	close(take_fd(&s->fd));
	return r;
}

void loop_change(struct source *s, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = s};
	epoll_ctl(loop.epoll_fd, EPOLL_CTL_MOD, s->fd, &event);
}

void loop_leave(struct source *s)
{
	if (s->fd >= 0)
		epoll_ctl(loop.epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
}

void loop_remove(struct source *s)
{
	loop_leave(s);
	if (s->fd >= 0)
		close(take_fd(&s->fd));
}

void loop_free_later(void *memory)
{
	if (dead_count == dead_size) {
		dead_size = dead_size ? dead_size * 2 : 64;
		dead = mem_resize(dead, dead_size, sizeof *dead);
	}
	dead[dead_count++] = memory;
}

static void loop_bury(void)
{
	while (dead_count > 0)
		free(dead[--dead_count]);
}

static void loop_tick(loop_tick_fn *const *ticks)
{
	static int64_t last_ms;
	if (loop.now_ms - last_ms < TICK_MS)
		return;
	last_ms = loop.now_ms;
	for (; *ticks; ticks++)
		(*ticks)();
}

void loop_run(loop_tick_fn *const *ticks)
{
	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		int n = epoll_wait(loop.epoll_fd, events, EVENTS_MAX, TICK_MS);
		loop.now_ms = clock_monotonic_us() / 1000;
		for (int i = 0; i < n; i++) {
			struct source *s = events[i].data.ptr;
			if (s->fd >= 0)
				s->ready(s, events[i].events);
		}
		loop_tick(ticks);
		loop_bury();
	}
}
