/*
 * 56: system calls with random arguments, `fuzz SECONDS SEED FIRST LAST`. Numbers that the
 * allow-list does not know must answer ENOSYS, whatever the arguments. Those it may know are called
 * as well, in children that may die of it; of them only the host's log can tell anything. One line
 * of report.
 */
#include "attempt.h"

#include <sys/resource.h>
#include <time.h>

/* The allow-list's calls from 450 on; whether they are open depends on libseccomp's age. */
static const int maybe_allowed[] = {451, 452, 453, 454, 455, 456, 462, 463, 464, 465, 466};

/* Those that would end or multiply the fuzzer itself: it is its children's neighbour. */
static const int harmful[] = {SYS_clone, SYS_clone3,
#ifdef SYS_fork
	SYS_fork, SYS_vfork,
#endif
	SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
	SYS_pidfd_send_signal, SYS_ptrace, SYS_process_vm_writev, SYS_prlimit64, SYS_setpriority,
	SYS_sched_setattr, SYS_sched_setscheduler, SYS_sched_setaffinity};

static uint64_t state;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static bool may_be_allowed(int nr)
{
	for (size_t i = 0; i < COUNT(maybe_allowed); i++)
		if (maybe_allowed[i] == nr)
			return true;
	return nr < 450;
}

static bool is_harmful(int nr)
{
	for (size_t i = 0; i < COUNT(harmful); i++)
		if (harmful[i] == nr)
			return true;
	return false;
}

/* Numbers that look like something: small, negative, a pointer, a page's border, noise. */
static long random_argument(void)
{
	static char scratch[8192];
	switch (next_random() % 7) {
	case 0:
		return (long)(next_random() % 16);
	case 1:
		return -(long)(next_random() % 16);
	case 2:
		return (long)(uintptr_t)(scratch + next_random() % 4096);
	case 3:
		return (long)(1ul << (next_random() % 64));
	case 4:
		return (long)(next_random() & ~4095ul);
	case 5:
		return 0;
	default:
		return (long)next_random();
	}
}

static long call_at_random(int nr)
{
	return syscall(nr, random_argument(), random_argument(), random_argument(),
		random_argument(), random_argument(), random_argument());
}

/* A few calls in a child: it may hang, die or close its own descriptors. */
static void call_in_child(int nr)
{
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit small = {64 << 20, 64 << 20};
		int null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		setpgid(0, 0);
		setrlimit(RLIMIT_AS, &small);
		alarm(1);
		for (int i = 0; i < 20; i++)
			call_at_random(nr);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	must_be_inside();
	if (argc != 5)
		return 2;
	time_t end = time(NULL) + atoi(argv[1]);
	int first = atoi(argv[3]), last = atoi(argv[4]);
	unsigned long calls = 0;
	state = strtoull(argv[2], NULL, 16) | 1;
	while (time(NULL) < end) {
		for (int nr = first; nr <= last; nr++) {
			if (is_harmful(nr))
				continue;
			if (may_be_allowed(nr)) {
				call_in_child(nr);
				continue;
			}
			for (int i = 0; i < 50; i++, calls++) {
				if (call_at_random(nr) == -1 && errno == ENOSYS)
					continue;
				printf("56 unknown-calls ESCAPED call %d answered %s (seed %s)\n",
					nr, strerror(errno), argv[2]);
				return 0;
			}
		}
	}
	printf("56 unknown-calls BLOCKED %lu calls, all ENOSYS\n", calls);
	return 0;
}
