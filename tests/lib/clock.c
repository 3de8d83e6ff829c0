/*
 * Preloaded into the server, it makes its time pass BUNKER_TEST_CLOCK times as fast: what it reads
 * from the clocks runs ahead, and what it waits for comes sooner. Sandboxes are not touched: their
 * init is static.
 *
 * BUNKER_TEST_STEPS names a file of two 64-bit numbers, which may change at any time: by how many
 * nanoseconds the wall clock was set, and how long the machine was suspended. Monotonic time stands
 * still in the latter.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static int64_t rate = 1;
static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};
static int64_t base[3];
static const int64_t none[2];
static const volatile int64_t *steps = none;
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
	for (int i = 0; i < 3; i++)
		base[i] = now(clocks[i]);
	if (text)
		rate = atoll(text);
	const char *path = getenv("BUNKER_TEST_STEPS");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, fd, 0);
	if (mapped != MAP_FAILED)
		steps = mapped;
	if (fd >= 0)
		close(fd);
}

static int clock_index(clockid_t id)
{
	switch (id) {
	case CLOCK_REALTIME:
	case CLOCK_REALTIME_COARSE:
		return 0;
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_COARSE:
		return 1;
	case CLOCK_BOOTTIME:
		return 2;
	default:
		return -1;
	}
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int i = clock_index(id);
	if (!real_gettime)
		begin();
	if (i < 0)
		return real_gettime(id, ts);
	int64_t t = base[i] + (now(clocks[i]) - base[i]) * rate;
	t += (i == 0 ? steps[0] : 0) + (i == 1 ? 0 : steps[1]);
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
