/*
 * 58: what the kernel counts for the whole host, or for the user who made the sandbox, rather than
 * for the sandbox. `hogs NAME take` takes all it can get, prints how many that were, and holds them
 * until it is killed; `hogs NAME one` says whether there is one left for somebody else.
 */
#include "attempt.h"

#include <mqueue.h>
#include <sys/inotify.h>
#include <time.h>

#define TAKE_MAX 200000

static int take_inotify(void)
{
	return inotify_init1(0);
}

static int take_signal(void)
{
	static bool blocked;
	sigset_t all;
	sigfillset(&all);
	if (!blocked)
		sigprocmask(SIG_BLOCK, &all, NULL);
	blocked = true;
	return sigqueue(getpid(), SIGRTMIN, (union sigval){0});
}

static int take_timer(void)
{
	timer_t timer;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	return timer_create(CLOCK_MONOTONIC, &event, &timer);
}

static int take_queue(void)
{
	static int number;
	char name[64];
	snprintf(name, sizeof name, "/hog-%d-%d", (int)getpid(), number++);
	mqd_t queue = mq_open(name, O_CREAT | O_RDWR, 0600, NULL);
	if (queue >= 0)
		mq_unlink(name);
	return queue;
}

static int take_aio(void)
{
	unsigned long context = 0;
	return (int)syscall(SYS_io_setup, 128, &context);
}

static int take_terminal(void)
{
	return open("/dev/ptmx", O_RDWR | O_NOCTTY);
}

static const struct {
	const char *name;
	int (*take)(void);
} kinds[] = {{"inotify", take_inotify}, {"signals", take_signal}, {"timers", take_timer},
	{"queues", take_queue}, {"aio", take_aio}, {"terminals", take_terminal}};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < COUNT(kinds); i++) {
		int count = 0, most = strcmp(argv[2], "one") == 0 ? 1 : TAKE_MAX;
		if (strcmp(kinds[i].name, argv[1]) != 0)
			continue;
		if (most > 1)
			must_be_inside();
		while (count < most && kinds[i].take() >= 0)
			count++;
		printf("%d %s\n", count, count < most ? strerror(errno) : "enough");
		fflush(stdout);
		while (most > 1)
			pause();
		return 0;
	}
	return 2;
}
