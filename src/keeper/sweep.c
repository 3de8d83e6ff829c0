/*
 * The sweeper: takes apart what is in the trash, and lets go of dead sandboxes' mounts. Both take
 * their time, and nobody waits for it.
 *
 * A tree in the trash is hostile: a million files, a hundred thousand levels. A subvolume goes by
 * one ioctl. Others are emptied by descriptors that never follow a link, and deep ones are
 * flattened by moving directories up into the trash, so that neither stack nor descriptors grow
 * with the depth.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/trim.h"

#define TIGHT_PART    8 /* of the pool: less than this is free */
#define LOOK_FIRST_MS 50
#define LOOK_MAX_MS   5000
#define GATHER_MS     1000
#define GATHER_MAX    64

/* Moves dir/name to the top of the trash under a fresh name. */
static int move_up(int trash_fd, int dir_fd, const char *name)
{
	static uint64_t counter;
	char fresh[64];
	snprintf(fresh, sizeof fresh, "%d.%llu", getpid(), (unsigned long long)++counter);
	return renameat(dir_fd, name, trash_fd, fresh);
}

/* Empties one directory: files go, directories with content move to the top for a later round. */
static void empty_directory(int trash_fd, int fd)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, 0) == 0 || errno == ENOENT)
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) < 0)
			move_up(trash_fd, dirfd(dir), entry->d_name);
	}
	closedir(dir);
}

static bool sweep_remove_entry(int trash_fd, const char *name)
{
	int fd = openat(trash_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return unlinkat(trash_fd, name, 0) == 0;
	if (btrfs_is_subvolume(fd) && btrfs_delete(trash_fd, name) == 0) {
		close(fd);
		return true;
	}
	empty_directory(trash_fd, fd);
	return unlinkat(trash_fd, name, AT_REMOVEDIR) == 0;
}

/* Sweeps the trash once. Returns true if something was removed or moved. */
static bool sweep_once(int trash_fd)
{
	int fd = openat(trash_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *trash = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool progress = false;
	if (!trash)
		return false;
	while ((entry = readdir(trash)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			progress |= sweep_remove_entry(trash_fd, entry->d_name);
	closedir(trash);
	return progress;
}

union fd_message {
	char space[CMSG_SPACE(sizeof(int))];
	struct cmsghdr align;
};

/* What is written to a paused sandbox's file is more than there can be: the kernel takes back what
 * it finds. */
static void sweep_reclaim(int fd)
{
	if (write(fd, "1T", 2) < 0)
		log_debug("not all could be reclaimed", "error", strerror(errno));
	close(fd);
}

/* Mounts that wait for others. */
struct gathered {
	int mounts[GATHER_MAX];
	size_t count;
	int64_t since_us; /* the first message that is not dealt with */
};

/* Takes one message; false when nobody will send another. */
static bool take_message(int work_fd, struct gathered *g)
{
	union fd_message control;
	char byte;
	struct iovec text = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &text,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof control.space};
	ssize_t n = recvmsg(work_fd, &message, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n < 0 && errno == EINTR;
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		int fd;
		memcpy(&fd, CMSG_DATA(c), sizeof fd);
		if (byte == SWEEPER_RECLAIM)
			sweep_reclaim(fd);
		else
			g->mounts[g->count++] = fd;
	}
	if (g->since_us == 0)
		g->since_us = clock_monotonic_us();
	return true;
}

/* How long to wait for a message: look_ms for the first, a little for those that go with it. */
static int gathered_wait_ms(const struct gathered *g, int look_ms)
{
	if (g->since_us == 0)
		return look_ms;
	int64_t left_us = g->since_us + GATHER_MS * 1000 - clock_monotonic_us();
	return look_ms < 0 && left_us > 0 ? (int)(left_us / 1000) : 0;
}

/*
 * Waits for work, or until it is time to look at the pool. Unmounting commits what was written to
 * the whole pool, and whoever makes a disk waits for that; mounts that go together need one commit.
 * So the first waits for others, but not when the pool needs the space.
 */
static bool receive_work(int work_fd, int look_ms)
{
	struct gathered g = {0};
	struct pollfd work = {.fd = work_fd, .events = POLLIN};
	bool goes_on = true;
	while (goes_on && g.count < GATHER_MAX && poll(&work, 1, gathered_wait_ms(&g, look_ms)) > 0)
		goes_on = take_message(work_fd, &g);
	for (size_t i = 0; i < g.count; i++)
		close(g.mounts[i]);
	return goes_on;
}

static bool is_tight(int trash_fd)
{
	struct statfs fs;
	return fstatfs(trash_fd, &fs) == 0 && fs.f_type == BTRFS_SUPER_MAGIC &&
	       fs.f_bavail < fs.f_blocks / TIGHT_PART;
}

/*
 * A subvolume's space is free after two commits: one forgets its name, and what the kernel's
 * cleaner then gives back is free with the next. By itself that takes up to a minute. Returns when
 * to do it again, in ms; -1: there is no need.
 */
static int free_soon(int trash_fd, int last_ms)
{
	if (!is_tight(trash_fd))
		return -1;
	bool was_deleting = btrfs_is_deleting(trash_fd);
	if (btrfs_reclaim(trash_fd) < 0 || !was_deleting)
		return -1;
	return last_ms < 0 ? LOOK_FIRST_MS : last_ms < LOOK_MAX_MS ? last_ms * 2 : last_ms;
}

static int sweep_all(int trash_fd, int last_ms)
{
	while (sweep_once(trash_fd))
		;
	return free_soon(trash_fd, last_ms);
}

void sweeper_main(int trash_fd, int work_fd)
{
	struct error e = {0};
	log_set_process("sweeper");
	prctl(PR_SET_NAME, "bunker-sweeper", 0, 0, 0);
	setpriority(PRIO_PROCESS, 0, 10);
	if (confine_keeper(&e) < 0) {
		log_error("the sweeper cannot start", "error", e.message);
		_exit(1);
	}
	trim_memory();
	int look_ms = sweep_all(trash_fd, -1);
	bool goes_on;
	do {
		goes_on = receive_work(work_fd, look_ms);
		look_ms = sweep_all(trash_fd, look_ms);
	} while (goes_on);
	_exit(0);
}

void keeper_remove_tree(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	while (sweep_once(fd))
		;
	close(fd);
	rmdir(path);
}
