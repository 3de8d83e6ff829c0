/*
 * Boots and destroys one sandbox, on the host's side: everything that has a name on the host is
 * made here before the clone and removed here after the end, in the opposite order. A failed boot
 * leaves nothing, and destroying what is half there, or not there, works.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/fd.h"

#define CLEANUPS_MAX    256
#define CLEANUPS_KEPT   128 /* at most, for a quiet moment */
#define CROWD           500
#define KILL_TIMEOUT_MS 5000
#define SOCKET_BACKLOG  512 /* the front, and as many file calls as it begins at once */

/* ---- the socket that the front finds again ---- */

static void socket_name(const char *id, char out[ID_SIZE + 8])
{
	snprintf(out, ID_SIZE + 8, "%s.sock", id);
}

static int open_listener(struct warden *w, const char *id)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s/run/%s.sock", w->data, id);
	autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	mode_t mask = umask(0177);
	int r = bind(fd, (struct sockaddr *)&address, sizeof address);
	umask(mask);
	if (r < 0 || chown(address.sun_path, w->front_uid, w->front_uid) < 0 ||
		listen(fd, SOCKET_BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

/* ---- cgroups that are removed later ---- */

/*
 * With a memory cgroup goes a walk through all superblocks of the host, of which each sandbox has
 * seven, under the lock for all cgroups: with 3,000 sandboxes it is taken for 9 ms, and a boot
 * needs it often. Where there are so many, cgroups go when nothing is asked for.
 */
static char cleanups[CLEANUPS_MAX][ID_SIZE];
static size_t cleanup_count;

static void add_cleanup(const char *id)
{
	for (size_t i = 0; i < cleanup_count; i++)
		if (strcmp(cleanups[i], id) == 0)
			return;
	if (cleanup_count < CLEANUPS_MAX)
		memcpy(cleanups[cleanup_count++], id, ID_SIZE);
}

/* It is about to be used again. */
static void forget_cleanup(const char *id)
{
	for (size_t i = 0; i < cleanup_count; i++) {
		if (strcmp(cleanups[i], id) == 0) {
			memmove(cleanups[i], cleanups[--cleanup_count], ID_SIZE);
			return;
		}
	}
}

/* ---- boot ---- */

static int boot_fail(struct boot *b, enum warden_step step, int error)
{
	b->step = step;
	b->error = error < 0 ? -error : error;
	return -1;
}

static uid_t boot_owner_of(struct warden *w, const char *id)
{
	struct stat st;
	return fstatat(w->cgroup_v2_fd, id, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_uid : 0;
}

static bool remove_cgroups(struct warden *w, const char *id)
{
	uid_t owner = boot_owner_of(w, id);
	if (cgroup_remove(w, id) < 0)
		return false;
	if (owner)
		uids_release(w, owner);
	return true;
}

/* Removes the leftovers of a halt. Returns -EAGAIN while the kernel still uses them. */
static int clear_old_boot(struct warden *w, const char *id)
{
	char name[ID_SIZE + 8];
	socket_name(id, name);
	unlinkat(w->run_fd, name, 0);
	if (!remove_cgroups(w, id))
		return -EAGAIN;
	forget_cleanup(id);
	return 0;
}

/* Everything with a name on the host. */
static int boot_prepare(struct warden *w, struct boot *b)
{
	int r = uids_take(w, &b->uid_base);
	if (r < 0)
		return boot_fail(b, WARDEN_STEP_SLOT, r);
	FAULT_POINT();
	r = clear_old_boot(w, b->id);
	if (r < 0)
		return boot_fail(b, WARDEN_STEP_REQUEST, r);
	r = cgroup_create(w, b->id, b->uid_base);
	if (r < 0)
		return boot_fail(b, WARDEN_STEP_CGROUP, r);
	FAULT_POINT();
	autoclose int root_fd = cgroup_has_cpu_on_v2(w) ? cgroup_dir(w, b->id) : -1;
	b->userns_fd = userns_create(b->uid_base, root_fd, &b->cgroupns_fd);
	if (b->userns_fd < 0)
		return boot_fail(b, WARDEN_STEP_USERNS, b->userns_fd);
	r = cgroup_divide(w, b);
	if (r < 0)
		return boot_fail(b, WARDEN_STEP_CGROUP, r);
	b->listen_fd = open_listener(w, b->id);
	if (b->listen_fd < 0)
		return boot_fail(b, WARDEN_STEP_SOCKET, b->listen_fd);
	FAULT_POINT();
	return 0;
}

/* The child's report: silence until its end of the pipe closes by exec means that init runs. */
static int read_report(struct boot *b)
{
	int report[2];
	ssize_t n;
	do
		n = read(b->report_fd, report, sizeof report);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n == (ssize_t)sizeof report)
		return boot_fail(b, (enum warden_step)report[0], report[1]);
	return boot_fail(b, WARDEN_STEP_EXEC, EIO);
}

static int boot_clone(struct warden *w, struct boot *b)
{
	int report[2];
	struct clone_args args = {
		.flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
			 CLONE_INTO_CGROUP,
		.exit_signal = SIGCHLD,
		.cgroup = (uint64_t)b->init_cgroup_fd,
	};
	if (pipe2(report, O_CLOEXEC) < 0)
		return boot_fail(b, WARDEN_STEP_CLONE, errno);
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		b->report_fd = report[1];
		inside_main(w, b);
	}
	int error = errno;
	close(report[1]);
	b->report_fd = report[0];
	if (pid < 0)
		return boot_fail(b, WARDEN_STEP_CLONE, error);
	b->pid = (pid_t)pid;
	FAULT_POINT();
	return 0;
}

static void boot_close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static int boot_undo(struct warden *w, struct boot *b)
{
	boot_close_if_open(b->report_fd);
	if (b->uid_base)
		uids_release(w, b->uid_base);
	boot_end(w, b->id, true);
	return -1;
}

int boot_begin(struct warden *w, struct boot *b)
{
	int *const fds[] = {&b->userns_fd, &b->cgroupns_fd, &b->listen_fd, &b->cgroup_fd,
		&b->quota_fd, &b->init_cgroup_fd};
	b->report_fd = -1;
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		*fds[i] = -1;
	if (!disk_exists(w, b->id))
		return boot_fail(b, WARDEN_STEP_DISK, ENOENT);
	int r = boot_prepare(w, b);
	if (r == 0)
		r = boot_clone(w, b);
	for (size_t i = 0; i < ARRAY_LEN(fds); i++)
		boot_close_if_open(*fds[i]);
	return r < 0 ? boot_undo(w, b) : 0;
}

bool boot_has_ended(const struct boot *b)
{
	struct pollfd p = {.fd = b->report_fd, .events = POLLIN};
	return poll(&p, 1, 0) > 0;
}

int boot_finish(struct warden *w, struct boot *b)
{
	if (read_report(b) < 0) {
		waitpid(b->pid, NULL, 0);
		return boot_undo(w, b);
	}
	close(b->report_fd);
	return 0;
}

/* ---- destroy ---- */

void boot_bury(struct warden *w, struct dying *d)
{
	boot_close_if_open(d->pidfd);
	disk_release_mounts(w, d->mounts_fd);
}

int boot_end(struct warden *w, const char *id, bool keep_disk)
{
	char name[ID_SIZE + 8];
	struct dying d;
	int r = cgroup_kill(w, id, &d);
	bool dead = r == 0 && cgroup_is_dead(&d, KILL_TIMEOUT_MS);
	boot_bury(w, &d);
	if (!dead)
		return r < 0 ? r : -ETIMEDOUT;
	FAULT_POINT();
	socket_name(id, name);
	unlinkat(w->run_fd, name, 0);
	FAULT_POINT();
	if (!keep_disk)
		disk_discard(w, id);
	FAULT_POINT();
	spare_keep(w->cgroup_v1_fd[CONTROLLER_CPU], id);
	FAULT_POINT();
	/* The kernel may need a moment more; the uid block is free only after that. */
	bool later = uids_count(w) >= CROWD && cleanup_count < CLEANUPS_KEPT;
	if (later || !remove_cgroups(w, id))
		add_cleanup(id);
	return 0;
}

bool boot_retry_cleanups(struct warden *w, size_t max)
{
	size_t kept = 0, removed = 0;
	if (uids_count(w) < CROWD)
		max = cleanup_count;
	for (size_t i = 0; i < cleanup_count; i++) {
		if (removed < max && remove_cgroups(w, cleanups[i]))
			removed++;
		else
			memmove(cleanups[kept++], cleanups[i], ID_SIZE);
	}
	cleanup_count = kept;
	return kept > 0;
}
