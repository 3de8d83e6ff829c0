/*
 * Preloaded into the server, it makes its time pass BUNKER_TEST_CLOCK times as fast: what it reads
 * from the clocks runs ahead, and what it waits for comes sooner. Sandboxes are not touched: their
 * init is static.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

#define SECOND 1000000000LL

static int64_t rate = 1;
static int64_t base[2]; /* CLOCK_REALTIME, CLOCK_MONOTONIC */
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_wait)(int, struct epoll_event *, int, int);
static int (*real_pwait)(int, struct epoll_event *, int, int, const sigset_t *);

static int64_t now(clockid_t id)
{
	struct timespec ts;
	real_gettime(id, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("BUNKER_TEST_CLOCK");
	real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
	real_wait = dlsym(RTLD_NEXT, "epoll_wait");
	real_pwait = dlsym(RTLD_NEXT, "epoll_pwait");
	base[0] = now(CLOCK_REALTIME);
	base[1] = now(CLOCK_MONOTONIC);
	if (text)
		rate = atoll(text);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int is_wall = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
	int is_monotonic = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE;
	if (!real_gettime)
		begin();
	if (!is_wall && !is_monotonic)
		return real_gettime(id, ts);
	int64_t start = base[is_monotonic];
	int64_t t = start + (now(is_wall ? CLOCK_REALTIME : CLOCK_MONOTONIC) - start) * rate;
	ts->tv_sec = t / SECOND;
	ts->tv_nsec = t % SECOND;
	return 0;
}

static int sooner(int timeout)
{
	return timeout <= 0 ? timeout : (int)((timeout + rate - 1) / rate);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	return real_wait(fd, events, max, sooner(timeout));
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
	return real_pwait(fd, events, max, sooner(timeout), mask);
}
