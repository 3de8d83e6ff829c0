#include "server/watchdog.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LOOK_MS       1000
#define BEAT_MS       250
#define STARVED_SHARE 10 /* who got less than a tenth of the time could not have worked */

/* Only the handler of SIGALRM changes it, or who has that blocked. */
static struct {
	uint64_t *beats;
	int64_t patience_ms;
	pid_t front;
	uint64_t seen_beats;
	int64_t seen_used_ms; /* processor time when a beat was last seen */
	int64_t silent_ms;
	bool killed;
	void (*also)(int number); /* looks at something else; or NULL */
} watchdog;

/* ---- the parent ---- */

/* Reads the state and the CPU time of the loop's thread; the state is '\0' when it is gone. */
static char watchdog_read_thread(int64_t *used_ms)
{
	char path[64], text[1024], state = '\0';
	unsigned long long user = 0, kernel = 0;
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", watchdog.front, watchdog.front);
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	const char *name_end = strrchr(text, ')');
	if (!name_end || sscanf(name_end, ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu %llu",
				 &state, &user, &kernel) != 3)
		return '\0';
	*used_ms = (int64_t)(user + kernel) * 1000 / sysconf(_SC_CLK_TCK);
	return state;
}

/*
 * Signals come only while the parent waits for requests, so that this may call whatever it likes.
 * Those that were missed meanwhile are one: a parent that was away for a minute looks once.
 */
static void watchdog_look(int number)
{
	int64_t used_ms = 0;
	if (watchdog.also)
		watchdog.also(number);
	uint64_t beats = __atomic_load_n(watchdog.beats, __ATOMIC_RELAXED);
	if (watchdog.front == 0 || watchdog.killed || watchdog.patience_ms == 0)
		return;
	char state = watchdog_read_thread(&used_ms);
	if (beats == 0 || beats != watchdog.seen_beats) {
		watchdog.seen_beats = beats;
		watchdog.seen_used_ms = used_ms;
		watchdog.silent_ms = 0;
	} else if (state == 'R' || state == 'S') {
		watchdog.silent_ms += LOOK_MS;
	}
	bool starved = state == 'R' &&
		       used_ms - watchdog.seen_used_ms < watchdog.patience_ms / STARVED_SHARE;
	if (watchdog.silent_ms < watchdog.patience_ms || starved)
		return;
	watchdog.killed = true;
	kill(watchdog.front, SIGKILL);
}

uint64_t *watchdog_open(int64_t patience_ms, void (*also)(int number))
{
	struct sigaction action = {.sa_handler = watchdog_look};
	struct itimerval every = {{LOOK_MS / 1000, 0}, {LOOK_MS / 1000, 0}};
	sigset_t mask;
	void *shared = mmap(NULL, sizeof *watchdog.beats, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		abort();
	watchdog.beats = shared;
	watchdog.patience_ms = patience_ms;
	watchdog.also = also;
	sigemptyset(&mask);
	sigaddset(&mask, SIGALRM);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigaction(SIGALRM, &action, NULL);
	if (patience_ms > 0 || also)
		setitimer(ITIMER_REAL, &every, NULL);
	return shared;
}

void watchdog_guard(pid_t front)
{
	watchdog.front = front;
	watchdog.seen_beats = 0;
	watchdog.seen_used_ms = watchdog.silent_ms = 0;
	watchdog.killed = false;
}

bool watchdog_has_killed(void)
{
	return watchdog.killed;
}

/* ---- the front ---- */

static void watchdog_on_beat(uv_timer_t *timer)
{
	__atomic_add_fetch((uint64_t *)timer->data, 1, __ATOMIC_RELAXED);
}

void watchdog_beat(uint64_t *beats, uv_loop_t *loop, uv_timer_t *timer)
{
	uv_timer_init(loop, timer);
	timer->data = beats;
	uv_timer_start(timer, watchdog_on_beat, 0, BEAT_MS); /* the first one with the first turn */
	uv_unref((uv_handle_t *)timer);
}

void watchdog_leave(uv_timer_t *timer)
{
	__atomic_store_n((uint64_t *)timer->data, 0, __ATOMIC_RELAXED);
	uv_close((uv_handle_t *)timer, NULL);
}
