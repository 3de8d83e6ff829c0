/*
 * A user namespace for one sandbox's block of uids. A short-lived child carries it until a
 * descriptor is open; afterwards the descriptor keeps it alive for the idmapped mounts and for
 * init.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
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

static int map_and_open(pid_t pid, uid_t base)
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
	int fd = openat(proc_fd, "ns/user", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/*
 * In the child: what a namespace uses of the host's kernel (inotify, queues, signals) is charged to
 * the uid that made it, so that must be the sandbox's own and not root. No namespace is made below
 * this one.
 */
static int make_namespace(uid_t base)
{
	if (syscall(SYS_setresgid, base, base, base) < 0 ||
		syscall(SYS_setresuid, base, base, base) < 0 || unshare(CLONE_NEWUSER) < 0)
		return -errno;
	return fd_write_file_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0");
}

static void __attribute__((noreturn)) hold(uid_t base, int link_fd)
{
	schedule_promptly();
	int r = make_namespace(base);
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

int userns_create(uid_t base)
{
	int link[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
		return -errno;
	pid_t pid = fork();
	if (pid == 0) {
		close(link[0]);
		hold(base, link[1]);
	}
	int error = errno;
	close(link[1]);
	int r = pid < 0 ? -error : wait_until_held(link[0]);
	int fd = r < 0 ? r : map_and_open(pid, base);
	close(link[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return fd;
}
