/*
 * Cgroups on the three kinds of hosts. Every sandbox has a directory on v2, because only v2 can
 * kill and freeze a tree; where the controllers are on v1 it has one more in each of their
 * hierarchies.
 *
 * The v2 directory belongs to the sandbox's root, so that init can make a child cgroup per process
 * there; nothing else of the sandbox ever sees a cgroup filesystem. The limits' files stay ours.
 */
#include "warden/warden.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fault.h"
#include "base/fd.h"

#define CPU_PERIOD_US      100000
#define FREEZE_PATIENCE_MS 3

static const char *const controller_names[CONTROLLER_COUNT] = {"memory", "cpu", "pids"};

/* ---- finding our place ---- */

static void own_name(const struct warden *w, char out[64])
{
	snprintf(out, 64, "bunker-%u-%s", w->uid_range, w->instance);
}

static bool is_filesystem(const char *path, long magic)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && fs.f_type == (__typeof__(fs.f_type))magic;
}

/* Where cgroup2 is mounted; a host that has only v1 gets a mount of its own in our namespace. */
static const char *find_v2(struct warden *w)
{
	static char own[WARDEN_PATH_MAX];
	if (is_filesystem("/sys/fs/cgroup", CGROUP2_SUPER_MAGIC))
		return "/sys/fs/cgroup";
	if (is_filesystem("/sys/fs/cgroup/unified", CGROUP2_SUPER_MAGIC))
		return "/sys/fs/cgroup/unified";
	snprintf(own, sizeof own, "%s/stage/cgroup2", w->data);
	if (mkdir(own, 0700) < 0 && errno != EEXIST)
		return NULL;
	if (mount("cgroup2", own, "cgroup2", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
		return NULL;
	return own;
}

/* On a v2 hierarchy a controller must be handed down by every directory above. */
static bool hand_down(int dir_fd, const char *controller)
{
	char line[32];
	snprintf(line, sizeof line, "+%s", controller);
	return fd_write_file_at(dir_fd, "cgroup.subtree_control", line) == 0;
}

static int make_and_open(int parent_fd, const char *name)
{
	if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_v1(struct warden *w, enum cgroup_controller c, const char *name, struct error *e)
{
	char path[WARDEN_PATH_MAX];
	snprintf(path, sizeof path, "/sys/fs/cgroup/%s", controller_names[c]);
	autoclose int parent = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0 || !is_filesystem(path, CGROUP_SUPER_MAGIC))
		return error_set(e, ERROR_UNAVAILABLE,
			"the cgroup controller '%s' is neither on v2 nor mounted at %s: its limit could not be enforced",
			controller_names[c], path);
	w->cgroup_v1_fd[c] = make_and_open(parent, name);
	if (w->cgroup_v1_fd[c] < 0)
		return error_set_errno(e, w->cgroup_v1_fd[c], "cannot make %s/%s", path, name);
	return 0;
}

int cgroup_open(struct warden *w, struct error *e)
{
	char name[64];
	bool on_v2[CONTROLLER_COUNT];
	int v2_count = 0;
	own_name(w, name);
	const char *root = find_v2(w);
	autoclose int root_fd = root ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (root_fd < 0)
		return error_set(
			e, ERROR_UNAVAILABLE, "cgroup v2 can be neither found nor mounted");
	w->cgroup_v2_fd = make_and_open(root_fd, name);
	if (w->cgroup_v2_fd < 0)
		return error_set_errno(e, w->cgroup_v2_fd, "cannot make %s/%s", root, name);
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		w->cgroup_v1_fd[c] = -1;
		on_v2[c] = hand_down(root_fd, controller_names[c]) &&
			   hand_down(w->cgroup_v2_fd, controller_names[c]);
		v2_count += on_v2[c];
	}
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (!on_v2[c] && open_v1(w, (enum cgroup_controller)c, name, e) < 0)
			return -1;
	if (v2_count == CONTROLLER_COUNT)
		w->cgroup_mode = CGROUP_V2;
	else
		w->cgroup_mode = strstr(root, "/stage/") ? CGROUP_V1 : CGROUP_HYBRID;
	return 0;
}

void cgroup_close(struct warden *w)
{
	char name[64], path[WARDEN_PATH_MAX];
	own_name(w, name);
	/* Each rmdir fails while a sandbox lives below, and that is right. */
	snprintf(path, sizeof path, "/proc/self/fd/%d/../%s", w->cgroup_v2_fd, name);
	rmdir(path);
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		if (w->cgroup_v1_fd[c] < 0)
			continue;
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/%s", controller_names[c], name);
		rmdir(path);
	}
}

/* ---- limits ---- */

static int write_number(int dir_fd, const char *file, int64_t value)
{
	char text[32];
	snprintf(text, sizeof text, "%lld", (long long)value);
	return fd_write_file_at(dir_fd, file, text);
}

static int set_memory_v1(int fd, int64_t bytes)
{
	/* memory <= memory+swap at every moment: which goes first depends on the direction. */
	int r = write_number(fd, "memory.limit_in_bytes", bytes);
	int swap = write_number(fd, "memory.memsw.limit_in_bytes", bytes);
	if (r < 0)
		r = write_number(fd, "memory.limit_in_bytes", bytes);
	if (r < 0 || (swap < 0 && swap != -ENOENT))
		return r < 0 ? r : swap;
	/* v1 counts the buffers of sockets apart. */
	int sockets = write_number(fd, "memory.kmem.tcp.limit_in_bytes", bytes);
	return sockets == -ENOENT ? 0 : sockets;
}

static int set_memory_v2(int fd, int64_t bytes)
{
	int r = write_number(fd, "memory.max", bytes);
	int swap = write_number(fd, "memory.swap.max", 0);
	return r < 0 ? r : swap == -ENOENT ? 0 : swap;
}

static int set_cpu_v1(int fd, int64_t millicores)
{
	return write_number(fd, "cpu.cfs_quota_us", millicores * CPU_PERIOD_US / 1000);
}

static int set_cpu_v2(int fd, int64_t millicores)
{
	char text[64];
	snprintf(text, sizeof text, "%lld %d", (long long)millicores * CPU_PERIOD_US / 1000,
		CPU_PERIOD_US);
	return fd_write_file_at(fd, "cpu.max", text);
}

static int set_pids(int fd, int64_t pids)
{
	return write_number(fd, "pids.max", pids);
}

static int warden_cgroup_set_limit(
	enum cgroup_controller c, bool v1, int fd, const struct warden_limits *limits)
{
	switch (c) {
	case CONTROLLER_MEMORY:
		return v1 ? set_memory_v1(fd, limits->memory) : set_memory_v2(fd, limits->memory);
	case CONTROLLER_CPU:
		return v1 ? set_cpu_v1(fd, limits->cpu) : set_cpu_v2(fd, limits->cpu);
	default:
		return set_pids(fd, limits->pids);
	}
}

/* The directory of one sandbox in which this controller works; *v1 tells which kind it is. */
static int controller_dir(struct warden *w, enum cgroup_controller c, const char *id, bool *v1)
{
	*v1 = w->cgroup_v1_fd[c] >= 0;
	int fd = openat(
		*v1 ? w->cgroup_v1_fd[c] : w->cgroup_v2_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cgroup_set_limits(struct warden *w, const char *id, const struct warden_limits *limits)
{
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		bool v1;
		autoclose int fd = controller_dir(w, (enum cgroup_controller)c, id, &v1);
		if (fd < 0)
			return fd;
		int r = warden_cgroup_set_limit((enum cgroup_controller)c, v1, fd, limits);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- life ---- */

int cgroup_detached_dir(struct warden *w, const char *id)
{
	int fd = (int)syscall(
		SYS_open_tree, w->cgroup_v2_fd, id, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd < 0)
		return -errno;
	int readable = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = readable < 0 ? -errno : readable;
	close(fd);
	return r;
}

int cgroup_dir(struct warden *w, const char *id)
{
	int fd = openat(w->cgroup_v2_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int give_to(int dir_fd, uid_t owner)
{
	if (fchownat(dir_fd, "cgroup.procs", owner, owner, 0) < 0 ||
		fchown(dir_fd, owner, owner) < 0)
		return -errno;
	return 0;
}

int cgroup_create(struct warden *w, const char *id, uid_t owner, const struct warden_limits *limits)
{
	if (mkdirat(w->cgroup_v2_fd, id, 0755) < 0)
		return -errno;
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (w->cgroup_v1_fd[c] >= 0 && mkdirat(w->cgroup_v1_fd[c], id, 0755) < 0 &&
			errno != EEXIST)
			return -errno;
	FAULT_POINT();
	autoclose int fd = cgroup_dir(w, id);
	if (fd < 0)
		return fd;
	int r = give_to(fd, owner);
	return r < 0 ? r : cgroup_set_limits(w, id, limits);
}

int cgroup_join_v1(struct warden *w, const char *id)
{
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		char path[64];
		if (w->cgroup_v1_fd[c] < 0)
			continue;
		/* "tasks", not "cgroup.procs": that one waits for an RCU grace period. */
		snprintf(path, sizeof path, "%s/tasks", id);
		int r = fd_write_file_at(w->cgroup_v1_fd[c], path, "0");
		if (r < 0)
			return r;
	}
	return 0;
}

static int open_mounts_of(pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int cgroup_kill(struct warden *w, const char *id, struct dying *d)
{
	*d = (struct dying){.pidfd = -1, .mounts_fd = -1};
	autoclose int fd = cgroup_dir(w, id);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	pid_t pid = (pid_t)fd_read_number_at(fd, "cgroup.procs", "");
	if (pid > 0) {
		d->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		d->mounts_fd = open_mounts_of(pid);
	}
	FAULT_POINT();
	return fd_write_file_at(fd, "cgroup.kill", "1");
}

int cgroup_freeze(struct warden *w, const char *id, bool freeze)
{
	autoclose int fd = cgroup_dir(w, id);
	int r = fd < 0 ? fd : fd_write_file_at(fd, "cgroup.freeze", freeze ? "1" : "0");
	FAULT_POINT();
	if (r < 0 || !freeze)
		return r;
	autoclose int events = openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC);
	struct pollfd p = {.fd = events, .events = POLLPRI};
	while (!fd_read_number_at(fd, "cgroup.events", "frozen"))
		if (poll(&p, 1, FREEZE_PATIENCE_MS) <= 0)
			return -EAGAIN;
	return 0;
}

int cgroup_reclaim_file(struct warden *w, const char *id)
{
	bool v1;
	autoclose int dir = controller_dir(w, CONTROLLER_MEMORY, id, &v1);
	if (dir < 0)
		return dir;
	int fd = openat(dir, v1 ? "memory.force_empty" : "memory.reclaim", O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

uint32_t cgroup_state(struct warden *w, const char *id)
{
	autoclose int fd = cgroup_dir(w, id);
	if (fd < 0 || !fd_read_number_at(fd, "cgroup.events", "populated"))
		return 0;
	return WARDEN_FOUND_PROCESSES |
	       (fd_read_number_at(fd, "cgroup.freeze", "") ? WARDEN_FOUND_FROZEN : 0u);
}

bool cgroup_is_dead(const struct dying *d, int wait_ms)
{
	struct pollfd p = {.fd = d->pidfd, .events = POLLIN};
	return d->pidfd < 0 || poll(&p, 1, wait_ms) > 0;
}

/* Removes the cgroups that init made below; a v2 directory goes only when it has no child. */
static void remove_children(int dir_fd)
{
	int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	if (!dir)
		return;
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_type == DT_DIR && entry->d_name[0] == 'e')
			unlinkat(dir_fd, entry->d_name, AT_REMOVEDIR);
	closedir(dir);
}

/* The v2 directory goes last: while it is there, a later start finds what is left. */
int cgroup_remove(struct warden *w, const char *id)
{
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (w->cgroup_v1_fd[c] >= 0 && unlinkat(w->cgroup_v1_fd[c], id, AT_REMOVEDIR) < 0 &&
			errno != ENOENT)
			return -errno;
	int fd = cgroup_dir(w, id);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	remove_children(fd);
	close(fd);
	FAULT_POINT();
	return unlinkat(w->cgroup_v2_fd, id, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int cgroup_scan_slots(struct warden *w)
{
	int copy = openat(w->cgroup_v2_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	if (!dir)
		return -errno;
	while ((entry = readdir(dir)) != NULL) {
		struct stat st;
		if (!id_is_valid(entry->d_name) ||
			fstatat(w->cgroup_v2_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		unsigned slot = slot_of_uid(w, st.st_uid);
		if (slot < UID_BLOCKS)
			w->slot_used[slot / 8] |= (uint8_t)(1u << (slot % 8));
	}
	closedir(dir);
	return 0;
}

/* ---- usage ---- */

int64_t cgroup_read_cpu(struct warden *w, const char *id)
{
	autoclose int fd = cgroup_dir(w, id);
	return fd < 0 ? 0 : fd_read_number_at(fd, "cpu.stat", "usage_usec");
}

int cgroup_read_usage(struct warden *w, const char *id, struct warden_usage *usage)
{
	bool v1;
	autoclose int memory_fd = controller_dir(w, CONTROLLER_MEMORY, id, &v1);
	if (memory_fd < 0)
		return -ENOENT;
	usage->cpu_us = cgroup_read_cpu(w, id);
	if (v1) {
		usage->memory = fd_read_number_at(memory_fd, "memory.usage_in_bytes", "");
		usage->oom_kills = fd_read_number_at(memory_fd, "memory.oom_control", "oom_kill");
	} else {
		usage->memory = fd_read_number_at(memory_fd, "memory.current", "");
		usage->oom_kills = fd_read_number_at(memory_fd, "memory.events", "oom_kill");
	}
	autoclose int pids_fd = controller_dir(w, CONTROLLER_PIDS, id, &v1);
	usage->pids = pids_fd < 0 ? 0 : fd_read_number_at(pids_fd, "pids.current", "");
	return 0;
}
