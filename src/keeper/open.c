/* The keeper's start and end, in the process that starts it. */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#define RESTART_MS 100

static const char *const kind_dirs[DISK_KIND_END] = {
	[DISK_BOX] = "boxes",
	[DISK_CHECKPOINT] = "checkpoints",
	[DISK_SNAPSHOT] = "snapshots",
	[DISK_LAYER] = "layers",
	[DISK_VOLUME] = "volumes",
};

static int keeper_open_make_dir(int parent, const char *name)
{
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static int keeper_open_make_directories(struct keeper *k, struct error *e)
{
	k->trash_fd = keeper_open_make_dir(k->disks_fd, "trash");
	k->templates_fd = keeper_open_make_dir(k->disks_fd, "templates");
	k->frozen_fd = keeper_open_make_dir(k->disks_fd, "frozen");
	k->aside_fd = keeper_open_make_dir(k->disks_fd, "aside");
	bool ok = k->trash_fd >= 0 && k->templates_fd >= 0 && k->frozen_fd >= 0 && k->aside_fd >= 0;
	for (int kind = DISK_NONE + 1; kind < DISK_KIND_END; kind++) {
		k->dirs[kind] = keeper_open_make_dir(k->disks_fd, kind_dirs[kind]);
		ok = ok && k->dirs[kind] >= 0;
	}
	return ok ? 0
		  : error_set(e, ERROR_INTERNAL, "cannot make the directories below %s/disks",
			    k->data);
}

int keeper_open(struct keeper *k, const struct keeper_config *config, struct error *e)
{
	*k = (struct keeper){.image_fd = -1, .loop_fd = -1, .disks_fd = -1, .cgroup_fd = -1};
	snprintf(k->data, sizeof k->data, "%s", config->data);
	k->data_fd = open(k->data, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (k->data_fd < 0)
		return error_set_errno(e, errno, "cannot open %s", k->data);
	if (disk_pool_open(k, config, e) < 0 || keeper_open_make_directories(k, e) < 0 ||
		skeleton_open(k, config->trust, e) < 0)
		return -1;
	return 0;
}

/* ---- the processes ---- */

/* Closes all other descriptors, so that port and lock are free when the warden is gone. */
static void keep_only(const int *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++)
		dup2(wanted[i], KEEPER_FIRST_FD + (int)i);
	close_range(3, KEEPER_FIRST_FD - 1, 0);
	close_range(KEEPER_FIRST_FD + (unsigned)count, ~0u, 0);
}

/*
 * Delays the restart of a process that died, because one that dies at once must not take a
 * processor.
 */
static void keeper_open_hold_back(const struct keeper *k, int work_fd)
{
	struct pollfd p = {.fd = work_fd}; /* no event but its end */
	if (k->has_died)
		poll(&p, 1, RESTART_MS);
}

static pid_t start_sweeper(struct keeper *k)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	const int wanted[] = {k->trash_fd, k->sweeper_pair[1]};
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	keep_only(wanted, ARRAY_LEN(wanted));
	keeper_open_hold_back(k, KEEPER_FIRST_FD + 1);
	sweeper_main(KEEPER_FIRST_FD, KEEPER_FIRST_FD + 1);
}

static pid_t start_keeper(struct keeper *k)
{
	pid_t pid = fork();
	if (pid != 0)
		return pid < 0 ? -errno : pid;
	int *const held[] = {&k->data_fd, &k->disks_fd, &k->trash_fd, &k->templates_fd,
		&k->frozen_fd, &k->aside_fd, &k->cgroup_fd, &k->sweeper_pair[0], &k->front_pair[1],
		&k->dirs[DISK_BOX], &k->dirs[DISK_CHECKPOINT], &k->dirs[DISK_SNAPSHOT],
		&k->dirs[DISK_LAYER], &k->dirs[DISK_VOLUME], &k->image_fd, &k->loop_fd};
	int wanted[ARRAY_LEN(held)];
	size_t count = k->image_fd >= 0 ? ARRAY_LEN(held) : ARRAY_LEN(held) - 2;
	for (size_t i = 0; i < count; i++) {
		wanted[i] = *held[i];
		*held[i] = KEEPER_FIRST_FD + (int)i;
	}
	keep_only(wanted, count);
	keeper_open_hold_back(k, k->front_pair[1]);
	keeper_main(k);
}

int keeper_start(struct keeper *k, int cgroup_fd, struct error *e)
{
	k->cgroup_fd = cgroup_fd;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k->sweeper_pair) < 0 ||
		socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, k->front_pair) < 0)
		return error_set_errno(e, errno, "cannot make the keeper's sockets");
	k->sweeper_pid = start_sweeper(k);
	if (k->sweeper_pid < 0)
		return error_set_errno(e, k->sweeper_pid, "cannot start the sweeper");
	k->pid = start_keeper(k);
	return k->pid < 0 ? error_set_errno(e, k->pid, "cannot start the keeper") : 0;
}

void keeper_child_ended(struct keeper *k, pid_t pid)
{
	if (pid != k->pid && pid != k->sweeper_pid)
		return;
	log_error("one of the disks' processes died; starting it again", "process",
		pid == k->pid ? "keeper" : "sweeper");
	k->has_died = true;
	if (pid == k->pid)
		k->pid = start_keeper(k);
	else
		k->sweeper_pid = start_sweeper(k);
}

/* Each ends when the other side of its socket is closed everywhere. */
static void close_pair(int pair[2])
{
	close(pair[0]);
	close(pair[1]);
}

void keeper_leave(struct keeper *k)
{
	close_pair(k->front_pair);
	while (waitpid(k->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void keeper_stop(struct keeper *k)
{
	close_pair(k->sweeper_pair);
	while (waitpid(k->sweeper_pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void keeper_close(struct keeper *k)
{
	char path[KEEPER_PATH_MAX + 32];
	for (int kind = DISK_NONE + 1; kind < DISK_KIND_END; kind++)
		close(k->dirs[kind]);
	close(k->trash_fd);
	close(k->templates_fd);
	close(k->frozen_fd);
	close(k->aside_fd);
	close(k->disks_fd);
	snprintf(path, sizeof path, "%s/disks", k->data);
	if (k->disk_pool == DISK_POOL_LOOP) {
		umount2(path, 0);
		close(k->loop_fd);
		close(k->image_fd);
	}
}
