/*
 * Cgroups on the three kinds of hosts. Every sandbox has a directory on v2, because only v2 can
 * kill and freeze a tree; where the controllers are on v1 it has one more in each of their
 * hierarchies.
 *
 * The v2 directory belongs to the sandbox's root, so that init can make a child cgroup per process
 * there; nothing else of the sandbox ever sees a cgroup filesystem. The limits' files stay ours.
 *
 * Processor time is limited twice. What runs inside has its quota in a cgroup "box" of its own, so
 * that init and its file workers, which are beside it, still answer when that is used up. The
 * cgroup around both has a core more: init works on hostile input, and must be bounded, too.
 *
 *     v1     cpu: ID (init), ID/box            v2: ID (init), ID/eN
 *     v2     ID (nothing, because the controller is handed down), ID/init, ID/box/eN
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/mount.h"

#define INIT_MILLICORES    1000
#define CPU_PERIOD_US      100000 /* of a new cgroup */
#define FREEZE_PATIENCE_MS 3
#define EMPTY_TRIES        50
#define EMPTY_PAUSE_US     200

static const char *const controller_names[CONTROLLER_COUNT] = {"memory", "cpu", "pids"};

/* ---- finding our place ---- */

void cgroup_own_name(const struct warden *w, char out[CGROUP_NAME_SIZE])
{
	snprintf(out, CGROUP_NAME_SIZE, "bunker-%s", w->instance);
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
	return fd_or_errno(openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
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
	char name[CGROUP_NAME_SIZE];
	bool on_v2[CONTROLLER_COUNT];
	int v2_count = 0;
	cgroup_own_name(w, name);
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
	int r = cgroup_set_limits(w, ".", &w->config.totals);
	if (r < 0)
		return error_set_errno(e, r, "cannot limit all sandboxes together");
	if (v2_count == CONTROLLER_COUNT)
		w->cgroup_mode = CGROUP_V2;
	else
		w->cgroup_mode = strstr(root, "/stage/") ? CGROUP_V1 : CGROUP_HYBRID;
	return 0;
}

void cgroup_close(struct warden *w)
{
	char name[CGROUP_NAME_SIZE], path[WARDEN_PATH_MAX];
	cgroup_own_name(w, name);
	spare_remove_all(w->cgroup_v1_fd[CONTROLLER_CPU]);
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

static int set_memory_v1(int fd, int64_t bytes)
{
	/* memory <= memory+swap at every moment: which goes first depends on the direction. */
	int r = fd_write_number_at(fd, "memory.limit_in_bytes", bytes);
	int swap = fd_write_number_at(fd, "memory.memsw.limit_in_bytes", bytes);
	if (r < 0)
		r = fd_write_number_at(fd, "memory.limit_in_bytes", bytes);
	if (r < 0 || (swap < 0 && swap != -ENOENT))
		return r < 0 ? r : swap;
	/* v1 counts the buffers of sockets apart. */
	int sockets = fd_write_number_at(fd, "memory.kmem.tcp.limit_in_bytes", bytes);
	return sockets == -ENOENT ? 0 : sockets;
}

static int set_memory(int fd, bool v1, int64_t bytes)
{
	if (v1)
		return set_memory_v1(fd, bytes);
	int r = fd_write_number_at(fd, "memory.max", bytes);
	int swap = fd_write_number_at(fd, "memory.swap.max", 0);
	return r < 0 ? r : swap == -ENOENT ? 0 : swap;
}

/* Who has used up a quota waits for the next period: short ones, but no quota below 2 ms, of which
 * the kernel makes little sense. */
static int64_t cpu_period_us(int64_t millicores)
{
	return millicores < 100 ? CPU_PERIOD_US : 20000;
}

/* Each write makes the kernel walk through all cgroups of the host: none that changes nothing. */
static int write_if_new(int fd, const char *file, int64_t value)
{
	return fd_read_number_at(fd, file, "") == value ? 0 : fd_write_number_at(fd, file, value);
}

static int set_cpu_v1(int fd, int64_t millicores, int64_t period_us)
{
	int r = write_if_new(fd, "cpu.cfs_period_us", period_us);
	return r < 0 ? r : write_if_new(fd, "cpu.cfs_quota_us", millicores * period_us / 1000);
}

static int set_cpu_v2(int fd, int64_t millicores, int64_t period_us)
{
	char text[64];
	snprintf(text, sizeof text, "%lld %lld", (long long)millicores * period_us / 1000,
		(long long)period_us);
	return fd_write_file_at(fd, "cpu.max", text);
}

/* Around the quota and a core more, in the kernel's own period. A host that has no more cores needs
 * no such limit, as long as there is none yet. */
static int set_cpu_around(int fd, bool v1, int64_t millicores)
{
	millicores += INIT_MILLICORES;
	if (millicores >= sysconf(_SC_NPROCESSORS_CONF) * 1000L &&
		fd_read_number_at(fd, v1 ? "cpu.cfs_quota_us" : "cpu.max", "") <= 0)
		return 0;
	return (v1 ? set_cpu_v1 : set_cpu_v2)(fd, millicores, CPU_PERIOD_US);
}

static int set_cpu(int fd, bool v1, int64_t millicores)
{
	int (*set)(int, int64_t, int64_t) = v1 ? set_cpu_v1 : set_cpu_v2;
	int64_t period_us = cpu_period_us(millicores);
	autoclose int box = openat(fd, "box", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (box < 0) /* booted by version 0.2 */
		return errno == ENOENT ? set(fd, millicores, period_us) : -errno;
	/* v1 wants the inner one to be the smaller at every moment, as with memory and swap. */
	int inner = set(box, millicores, period_us);
	int outer = set_cpu_around(fd, v1, millicores);
	return outer < 0 || inner == 0 ? outer : set(box, millicores, period_us);
}

/* The directory of one sandbox in which this controller works; *v1 tells which kind it is. */
static int controller_dir(struct warden *w, enum cgroup_controller c, const char *id, bool *v1)
{
	*v1 = w->cgroup_v1_fd[c] >= 0;
	return fd_or_errno(openat(*v1 ? w->cgroup_v1_fd[c] : w->cgroup_v2_fd, id,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

int cgroup_set_limits(struct warden *w, const char *id, const struct warden_limits *limits)
{
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		bool v1;
		autoclose int fd = controller_dir(w, (enum cgroup_controller)c, id, &v1);
		if (fd < 0)
			return fd;
		int r = c == CONTROLLER_MEMORY ? set_memory(fd, v1, limits->memory)
			: c == CONTROLLER_CPU  ? limits->cpu ? set_cpu(fd, v1, limits->cpu) : 0
					       : fd_write_number_at(fd, "pids.max", limits->pids);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- life ---- */

/* The root of a mount of its own, from which no `..` leads anywhere. */
static int open_detached(int dir_fd, const char *name)
{
	autoclose int fd = mount_clone(dir_fd, name, 0);
	int readable = fd < 0 ? fd : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return readable < 0 && fd >= 0 ? -errno : readable;
}

int cgroup_dir(struct warden *w, const char *id)
{
	return fd_or_errno(openat(w->cgroup_v2_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

static int give_to(int dir_fd, uid_t owner)
{
	if (fchownat(dir_fd, "cgroup.procs", owner, owner, 0) < 0 ||
		fchown(dir_fd, owner, owner) < 0)
		return -errno;
	return 0;
}

int cgroup_create(struct warden *w, const char *id, uid_t owner)
{
	if (mkdirat(w->cgroup_v2_fd, id, 0755) < 0)
		return -errno;
	for (int c = 0; c < CONTROLLER_COUNT; c++)
		if (w->cgroup_v1_fd[c] >= 0 &&
			!(c == CONTROLLER_CPU && spare_take(w->cgroup_v1_fd[c], id)) &&
			mkdirat(w->cgroup_v1_fd[c], id, 0755) < 0 && errno != EEXIST)
			return -errno;
	FAULT_POINT();
	autoclose int fd = cgroup_dir(w, id);
	return fd < 0 ? fd : give_to(fd, owner);
}

/* v2: what made the sandbox's namespaces was in there, and may take a moment to be gone. */
static int hand_down_cpu(int fd)
{
	int r = -EBUSY;
	for (int i = 0; i < EMPTY_TRIES && r == -EBUSY; i++) {
		if (i > 0)
			usleep(EMPTY_PAUSE_US);
		r = fd_write_file_at(fd, "cgroup.subtree_control", "+cpu");
	}
	return r;
}

bool cgroup_has_cpu_on_v2(const struct warden *w)
{
	return w->cgroup_v1_fd[CONTROLLER_CPU] < 0;
}

static int divide_v2(struct boot *b, int fd)
{
	int r = hand_down_cpu(fd);
	if (r < 0)
		return r;
	b->init_cgroup_fd = make_and_open(fd, "init");
	autoclose int box = make_and_open(fd, "box");
	if (b->init_cgroup_fd < 0 || box < 0)
		return b->init_cgroup_fd < 0 ? b->init_cgroup_fd : box;
	b->cgroup_fd = open_detached(fd, "box");
	b->quota_fd = open("/dev/null", O_WRONLY | O_CLOEXEC); /* they are born under it */
	return give_to(box, b->uid_base);
}

static int divide_v1(struct warden *w, struct boot *b, int fd)
{
	char path[ID_SIZE + 16];
	int cpu_fd = w->cgroup_v1_fd[CONTROLLER_CPU];
	snprintf(path, sizeof path, "%s/box", b->id);
	if (mkdirat(cpu_fd, path, 0755) < 0 && errno != EEXIST)
		return -errno;
	snprintf(path, sizeof path, "%s/box/tasks", b->id);
	b->quota_fd = openat(cpu_fd, path, O_WRONLY | O_CLOEXEC);
	b->init_cgroup_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	b->cgroup_fd = open_detached(fd, ".");
	return 0;
}

int cgroup_divide(struct warden *w, struct boot *b)
{
	autoclose int fd = cgroup_dir(w, b->id);
	int r = fd < 0 ? fd : cgroup_has_cpu_on_v2(w) ? divide_v2(b, fd) : divide_v1(w, b, fd);
	if (r == 0 && (b->cgroup_fd < 0 || b->init_cgroup_fd < 0 || b->quota_fd < 0))
		r = -EMFILE;
	return r < 0 ? r : cgroup_set_limits(w, b->id, &b->limits);
}

int cgroup_join(struct warden *w, const struct boot *b)
{
	for (int c = 0; c < CONTROLLER_COUNT; c++) {
		char path[64];
		if (w->cgroup_v1_fd[c] < 0)
			continue;
		/* "tasks", not "cgroup.procs": that one waits for an RCU grace period. */
		snprintf(path, sizeof path, "%s/tasks", b->id);
		int r = fd_write_file_at(w->cgroup_v1_fd[c], path, "0");
		if (r < 0)
			return r;
	}
	/* Only now: a membership that is set later would show its host path inside. */
	int r = b->cgroupns_fd < 0 ? unshare(CLONE_NEWCGROUP)
				   : setns(b->cgroupns_fd, CLONE_NEWCGROUP);
	return r < 0 ? -errno : 0;
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
	/* Init is the first of its cgroup; its workers were born there after it. */
	pid_t pid = (pid_t)fd_read_number_at(fd, "init/cgroup.procs", "");
	if (pid == 0)
		pid = (pid_t)fd_read_number_at(fd, "cgroup.procs", "");
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
	return fd_or_errno(
		openat(dir, v1 ? "memory.force_empty" : "memory.reclaim", O_WRONLY | O_CLOEXEC));
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

int cgroup_remove_tree(int parent_fd, const char *name, int levels)
{
	autodir DIR *dir = levels > 1 ? fd_open_dir_at(parent_fd, name) : NULL;
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL)
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			cgroup_remove_tree(dirfd(dir), entry->d_name, levels - 1);
	FAULT_POINT();
	return unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* The v2 directory goes last: while it is there, a later start finds what is left. */
int cgroup_remove(struct warden *w, const char *id)
{
	int r = 0;
	for (int c = 0; c < CONTROLLER_COUNT && r == 0; c++)
		if (w->cgroup_v1_fd[c] >= 0)
			r = cgroup_remove_tree(w->cgroup_v1_fd[c], id, c == CONTROLLER_CPU ? 2 : 1);
	return r < 0 ? r : cgroup_remove_tree(w->cgroup_v2_fd, id, 3);
}

/* ---- usage ---- */

/* Reads a number of one sandbox, from a file that v1 and v2 call by different names. */
static int64_t cgroup_read_number(struct warden *w, enum cgroup_controller c, const char *id,
	const char *v1_file, const char *v2_file, const char *key)
{
	char path[ID_SIZE + 32];
	bool v1 = w->cgroup_v1_fd[c] >= 0;
	snprintf(path, sizeof path, "%s/%s", id, v1 ? v1_file : v2_file);
	return fd_read_number_at(v1 ? w->cgroup_v1_fd[c] : w->cgroup_v2_fd, path, key);
}

int64_t cgroup_read_cpu(struct warden *w, const char *id)
{
	char path[ID_SIZE + 32];
	snprintf(path, sizeof path, "%s/cpu.stat", id);
	return fd_read_number_at(w->cgroup_v2_fd, path, "usage_usec");
}

int64_t cgroup_read_oom_kills(struct warden *w, const char *id)
{
	return cgroup_read_number(
		w, CONTROLLER_MEMORY, id, "memory.oom_control", "memory.events", "oom_kill");
}

int cgroup_read_usage(struct warden *w, const char *id, struct warden_usage *usage)
{
	struct stat st;
	if (fstatat(w->cgroup_v2_fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	usage->cpu_us = cgroup_read_cpu(w, id);
	usage->memory = cgroup_read_number(
		w, CONTROLLER_MEMORY, id, "memory.usage_in_bytes", "memory.current", "");
	usage->oom_kills = cgroup_read_oom_kills(w, id);
	usage->pids =
		cgroup_read_number(w, CONTROLLER_PIDS, id, "pids.current", "pids.current", "");
	return 0;
}
