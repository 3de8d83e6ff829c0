/*
 * Notes which functions ran. Linked into a program that is built with -finstrument-functions, it
 * sets one byte per function in the file that $PROBE_MAP names: the byte at the distance of the
 * function's first instruction from the program's first byte. tools/coverage-report reads it.
 *
 * The file is mapped before main, while nothing is confined yet. The front, the warden's children
 * and the keeper are forks, not new programs, and inherit the mapping; a note is no system call, so
 * that no filter sees it. The memory is shared: a process that is killed loses nothing. Init is a
 * program of its own and has no probe.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAP_SIZE (64u << 20)

extern const char __executable_start[];

void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

static volatile unsigned char *map;

__attribute__((no_instrument_function)) void __cyg_profile_func_enter(void *function, void *caller)
{
	size_t at = (size_t)((const char *)function - __executable_start);
	(void)caller;
	if (map && at < MAP_SIZE && !map[at])
		map[at] = 1;
}

__attribute__((no_instrument_function)) void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}

__attribute__((constructor, no_instrument_function)) static void open_map(void)
{
	const char *path = getenv("PROBE_MAP");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	if (ftruncate(fd, MAP_SIZE) == 0) {
		void *memory = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		map = memory == MAP_FAILED ? NULL : memory;
	}
	close(fd);
}
