/*
 * A user namespace for one sandbox's block of uids. A short-lived child carries it until a
 * descriptor is open; afterwards the descriptor keeps it alive for the idmapped mounts and for
 * init. Where the controllers are on v2 the child also makes the cgroup namespace: its root is the
 * cgroup of its maker, and init cannot be in the sandbox's, from which a controller is handed down.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/schedule.h"

static int write_map(int proc_fd, const char *file, uid_t base)
{
	char map[64];
	snprintf(map, sizeof map, "0 %u %u\n", base, UID_BLOCK);
	return fd_write_file_at(proc_fd, file, map);
}

static int map_and_open(pid_t pid, uid_t base, int *cgroupns_fd)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d", pid);
	autoclose int proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return -errno;
	int r = write_map(proc_fd, "uid_map", base);
	if (r == 0)
		r = write_map(proc_fd, "gid_map", base);
	if (r < 0)
		return r;
	if (cgroupns_fd)
		*cgroupns_fd = openat(proc_fd, "ns/cgroup", O_RDONLY | O_CLOEXEC);
	return fd_or_errno(openat(proc_fd, "ns/user", O_RDONLY | O_CLOEXEC));
}

/*
 * In the child: what a namespace uses of the host's kernel (inotify, queues, signals) is charged to
 * the uid that made it, so that must be the sandbox's own and not root.
 */
static int make_namespaces(uid_t base, bool with_cgroups)
{
	if (with_cgroups && unshare(CLONE_NEWCGROUP) < 0)
		return -errno;
	if (syscall(SYS_setresgid, base, base, base) < 0 ||
		syscall(SYS_setresuid, base, base, base) < 0 || unshare(CLONE_NEWUSER) < 0)
		return -errno;
	return 0;
}

static void __attribute__((noreturn)) hold(uid_t base, bool with_cgroups, int link_fd)
{
	schedule_promptly();
	int r = make_namespaces(base, with_cgroups);
	fd_write_all(link_fd, &r, sizeof r);
	/* The end comes when the warden closes its side, or dies. */
	while (read(link_fd, &r, sizeof r) < 0 && errno == EINTR)
		;
	_exit(0);
}

static int wait_until_held(int link_fd)
{
	int r;
	return read(link_fd, &r, sizeof r) == (ssize_t)sizeof r ? r : -EIO;
}

int userns_create(uid_t base, int cgroup_fd, int *cgroupns_fd)
{
	int link[2];
	/* Without a signal at its end: that would be taken for the end of a sandbox. */
	struct clone_args args = {.flags = cgroup_fd < 0 ? 0 : CLONE_INTO_CGROUP,
		.cgroup = cgroup_fd < 0 ? 0 : (uint64_t)cgroup_fd};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
		return -errno;
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0) {
		close(link[0]);
		hold(base, cgroup_fd >= 0, link[1]);
	}
	int error = errno;
	close(link[1]);
	int r = pid < 0 ? -error : wait_until_held(link[0]);
	int fd = r < 0 ? r : map_and_open(pid, base, cgroup_fd < 0 ? NULL : cgroupns_fd);
	close(link[0]);
	if (pid > 0)
		waitpid(pid, NULL, __WCLONE);
	return fd;
}
