/*
 * Sets up PID 1 and runs its loop. Init holds every capability of its own user namespace, because
 * it changes users and cgroups for its children; what a child can ever get back is bounded here,
 * once.
 */

#include "init/init.h"

#include <assert.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/schedule.h"

#define BIT(capability) (1ull << (capability))

/*
 * Capabilities that `apt-get install`, `sudo` and a server on port 80 need. None reaches the host.
 */
const uint64_t init_kept_capabilities = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
					BIT(CAP_FSETID) | BIT(CAP_KILL) | BIT(CAP_SETGID) |
					BIT(CAP_SETUID) | BIT(CAP_NET_BIND_SERVICE);

static void bound_capabilities(void)
{
	for (int c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++) {
		int r = init_kept_capabilities & BIT(c) ? 0 : prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
		assert(r == 0 && "init has CAP_SETPCAP, and no sandbox runs with more than it may");
		(void)r;
	}
}

/*
 * Resets ignored signals, which every command would inherit from the server's parent. Uses the
 * system call, because libc refuses to touch the signals it reserves.
 */
static void reset_signals(void)
{
	const uint64_t by_default[8] = {0}; /* the kernel's struct sigaction is at most this long */
	for (int number = 1; number <= 64; number++)
		syscall(SYS_rt_sigaction, number, by_default, NULL, 8);
}

static void signals_ready(struct source *s, uint32_t events)
{
	struct signalfd_siginfo info[16];
	(void)events;
	while (read(s->fd, info, sizeof info) > 0)
		;
	process_reap();
}

static void watch_children(struct source *s)
{
	sigset_t mask;
	sigemptyset(&mask);
	sigaddset(&mask, SIGCHLD);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signal(SIGPIPE, SIG_IGN);
	s->fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	s->ready = signals_ready;
	int r = s->fd < 0 ? -1 : loop_watch(s, EPOLLIN);
	assert(r == 0 && "init hears of its children");
	(void)r;
}

/* Returns the earlier of two moments; 0 means no deadline. */
static int64_t init_main_earlier(int64_t a, int64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

int main(int argc, char **argv, char **environment)
{
	(void)argc;
	(void)argv;
	static struct source signals;
	/* Not even the sandbox's root may read our memory or descriptors through /proc. */
	prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	prctl(PR_SET_NAME, "bunker-init", 0, 0, 0);
	schedule_promptly();
	bound_capabilities();
	reset_signals();
	umask(022);
	loop_open();
	watch_children(&signals);
	netlink_open(environment);
	connection_open();
	cgroup_prepare();
	warm_up();
	for (;;) {
		int64_t deadline = process_check_deadlines();
		process_sweep();
		deadline = init_main_earlier(deadline, connection_flush());
		cgroup_prepare();
		loop_run_once(deadline);
	}
}
