/*
 * Holding a sandbox still for a moment, by its v2 cgroup. One that somebody has paused is frozen
 * already and stays so; who pauses and who copies must not do so at the same time, and the front
 * sees to that.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"

#define FREEZE_TIMEOUT_US 2000000
#define DIRTY_MUCH        (16 << 20)

static int read_small(int dir_fd, const char *name, char *out, size_t size)
{
	autoclose int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);
	if (n < 0)
		return -errno;
	out[n] = '\0';
	return 0;
}

static bool is_frozen(int dir_fd)
{
	char text[128];
	return read_small(dir_fd, "cgroup.events", text, sizeof text) == 0 &&
	       strstr(text, "frozen 1") != NULL;
}

static int wait_until_frozen(int dir_fd)
{
	int64_t end = clock_monotonic_us() + FREEZE_TIMEOUT_US;
	autoclose int events = openat(dir_fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	if (events < 0)
		return -errno;
	while (!is_frozen(dir_fd)) {
		char text[128];
		struct pollfd p = {.fd = events, .events = POLLPRI};
		if (clock_monotonic_us() > end)
			return -ETIMEDOUT;
		/* A notification counts from the last read of the same descriptor. */
		if (pread(events, text, sizeof text, 0) < 0)
			return -errno;
		if (!is_frozen(dir_fd))
			poll(&p, 1, 5);
	}
	return 0;
}

static void thaw_sandbox(int cgroup_fd, const char *id)
{
	autoclose int dir = openat(cgroup_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0)
		fd_write_file_at(dir, "cgroup.freeze", "0");
}

/* 1: it was frozen before, and stays so; 0: frozen by us; negative: it cannot be. */
static int freeze_sandbox(int cgroup_fd, const char *id)
{
	char text[8] = "";
	autoclose int dir = openat(cgroup_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return errno == ENOENT ? 1 : -errno; /* no cgroup: nothing runs */
	int r = read_small(dir, "cgroup.freeze", text, sizeof text);
	if (r < 0)
		return r;
	if (text[0] == '1')
		return 1;
	r = fd_write_file_at(dir, "cgroup.freeze", "1");
	if (r == 0)
		r = wait_until_frozen(dir);
	if (r < 0)
		thaw_sandbox(cgroup_fd, id);
	return r;
}

/*
 * Who holds a sandbox still makes a note of it first: one that is left, because we were killed, is
 * thawed by whoever comes next.
 */
int hold_sandbox(struct keeper *k, const struct disk_name *disk, int disk_fd, struct held *ret)
{
	*ret = (struct held){0};
	if (disk->kind != DISK_BOX)
		return 0;
	/* Commits dirty data before the freeze, so that the sandbox stands still for less time. */
	if (k->disk_pool != DISK_POOL_DIRECTORY && btrfs_read_dirty(disk_fd) > DIRTY_MUCH)
		btrfs_sync(disk_fd);
	ret->since_us = clock_monotonic_us();
	if (mkdirat(k->frozen_fd, disk->id, 0700) < 0 && errno != EEXIST)
		return -errno;
	FAULT_POINT();
	int r = freeze_sandbox(k->cgroup_fd, disk->id);
	FAULT_POINT();
	if (r != 0)
		unlinkat(k->frozen_fd, disk->id, AT_REMOVEDIR);
	ret->id = r == 0 ? disk->id : NULL;
	return r < 0 ? r : 0;
}

static void thaw_noted(struct keeper *k, const char *id)
{
	thaw_sandbox(k->cgroup_fd, id);
	FAULT_POINT();
	unlinkat(k->frozen_fd, id, AT_REMOVEDIR);
}

void let_go(struct keeper *k, const struct held *h, int64_t *frozen_us)
{
	if (!h->id)
		return;
	thaw_noted(k, h->id);
	*frozen_us = clock_monotonic_us() - h->since_us;
}

void thaw_interrupted(struct keeper *k)
{
	int fd = openat(k->frozen_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL)
		if (id_is_valid(entry->d_name))
			thaw_noted(k, entry->d_name);
	if (dir)
		closedir(dir);
}
