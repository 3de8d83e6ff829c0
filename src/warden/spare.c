/*
 * Processor cgroups of dead sandboxes, for the next ones. For each write of a quota the kernel
 * walks through all cgroups of the host; but on v1 a cgroup can be renamed, and keeps its quota. In
 * between it is called "spare-N". Nothing else tells of it, so a later start finds it as well.
 */
#include "warden/warden.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"

#define SPARES_MAX 16
#define NAME_SIZE  (ID_SIZE + 16)

static bool is_empty(int cpu_fd, const char *id)
{
	char own[NAME_SIZE], box[NAME_SIZE];
	snprintf(own, sizeof own, "%s/tasks", id);
	snprintf(box, sizeof box, "%s/box/tasks", id);
	return fd_read_number_at(cpu_fd, own, "") == 0 && fd_read_number_at(cpu_fd, box, "") == 0;
}

void spare_keep(int cpu_fd, const char *id)
{
	char name[NAME_SIZE];
	bool kept = cpu_fd < 0 || !is_empty(cpu_fd, id);
	for (int i = 0; i < SPARES_MAX && !kept; i++) {
		snprintf(name, sizeof name, "spare-%d", i);
		kept = renameat(cpu_fd, id, cpu_fd, name) == 0 || errno != EEXIST;
	}
}

bool spare_take(int cpu_fd, const char *id)
{
	char name[NAME_SIZE];
	bool taken = false;
	for (int i = 0; i < SPARES_MAX && !taken; i++) {
		snprintf(name, sizeof name, "spare-%d", i);
		taken = renameat(cpu_fd, name, cpu_fd, id) == 0;
	}
	return taken;
}

void spare_remove_all(int cpu_fd)
{
	char name[NAME_SIZE];
	for (int i = 0; i < SPARES_MAX && cpu_fd >= 0; i++) {
		snprintf(name, sizeof name, "spare-%d", i);
		cgroup_remove_tree(cpu_fd, name, 2);
	}
}
