/*
 * A user namespace for one sandbox's block of uids. A short-lived child carries it until a
 * descriptor is open; afterwards the descriptor keeps it alive for the idmapped mounts and for
 * init.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <linux/sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

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

/* In the child: forbid user namespaces below this one for good, say so, and stay until killed. */
static void __attribute__((noreturn)) hold(int report_fd)
{
	int r = fd_write_file_at(AT_FDCWD, "/proc/sys/user/max_user_namespaces", "0");
	fd_write_all(report_fd, &r, sizeof r);
	for (;;)
		pause();
}

static int wait_until_held(int report_fd)
{
	int r;
	return read(report_fd, &r, sizeof r) == (ssize_t)sizeof r ? r : -EIO;
}

int userns_create(uid_t base)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	int report[2];
	if (pipe2(report, O_CLOEXEC) < 0)
		return -errno;
	autoclose int ours = report[0], theirs = report[1];
	long pid = syscall(SYS_clone3, &args, sizeof args);
	if (pid < 0)
		return -errno;
	if (pid == 0)
		hold(theirs);
	close(take_fd(&theirs));
	int r = wait_until_held(ours);
	int fd = r < 0 ? r : map_and_open((pid_t)pid, base);
	kill((pid_t)pid, SIGKILL);
	waitpid((pid_t)pid, NULL, 0);
	return fd;
}
