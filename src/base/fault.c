#include "base/fault.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static int64_t *countdowns; /* NULL: no faults are injected */
static enum fault_process own = FAULT_WARDEN;

void fault_open(void)
{
	const char *path = getenv("BUNKER_FAULTS");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *map = mmap(NULL, FAULT_PROCESSES * sizeof *countdowns, PROT_READ | PROT_WRITE,
		MAP_SHARED, fd, 0);
	countdowns = map == MAP_FAILED ? NULL : map;
	close(fd);
}

void fault_become(enum fault_process process)
{
	own = process;
}

void fault_point(void)
{
	int64_t left = countdowns ? __atomic_load_n(&countdowns[own], __ATOMIC_RELAXED) : 0;
	if (left > 0 && __atomic_sub_fetch(&countdowns[own], 1, __ATOMIC_RELAXED) == 0)
		kill(getpid(), SIGKILL);
	/* Only the thread of the loop is watched. */
	if (left < 0 && gettid() == getpid() &&
		__atomic_add_fetch(&countdowns[own], 1, __ATOMIC_RELAXED) == 0)
		for (volatile bool spin = true; spin;)
			;
}
