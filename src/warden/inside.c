/*
 * The way from a fresh clone to a sandbox's init, as a list of steps. Each either works or ends the
 * process with its name and errno in the report; nothing untrusted runs before the last one.
 *
 * The user namespace is entered last, so the mount, network and other namespaces belong to the
 * host's root and nobody inside can change them.
 */
#include "warden/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/schedule.h"
#include "base/landlock.h"

#define INIT_LISTEN_FD 3

static int step_join_cgroup(struct inside *in);
static int step_network(struct inside *in);
static int step_enter(struct inside *in);
static int step_identity(struct inside *in);
static int step_seccomp(struct inside *in);
static int step_exec(struct inside *in);

static const struct {
	enum warden_step step;
	int (*run)(struct inside *in);
} steps[] = {
	{WARDEN_STEP_JOIN_CGROUP, step_join_cgroup},
	{WARDEN_STEP_NETWORK, step_network},
	{WARDEN_STEP_LAYERS, step_layers},
	{WARDEN_STEP_ROOT, step_root},
	{WARDEN_STEP_USR, step_usr},
	{WARDEN_STEP_DEV, step_dev},
	{WARDEN_STEP_PROC, step_proc},
	{WARDEN_STEP_MASK, step_mask},
	{WARDEN_STEP_VOLUMES, step_volumes},
	{WARDEN_STEP_ENTER, step_enter},
	{WARDEN_STEP_IDENTITY, step_identity},
	{WARDEN_STEP_SECCOMP, step_seccomp},
	{WARDEN_STEP_EXEC, step_exec},
};

void inside_main(struct warden *w, struct boot *b)
{
	struct inside in = {.w = w, .b = b, .root_fd = -1, .proc_fd = -1, .sys_fd = -1};
	schedule_promptly();
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		int r = steps[i].run(&in);
		if (r < 0) {
			int report[2] = {(int)steps[i].step, -r};
			fd_write_all(b->report_fd, report, sizeof report);
			_exit(1);
		}
	}
	_exit(1);
}

static int step_join_cgroup(struct inside *in)
{
	return cgroup_join(in->w, in->b);
}

static int step_network(struct inside *in)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return -errno;
	return 0;
}

/*
 * The sandbox's root goes over the only mount, an empty one, of a namespace of its own: there is
 * nothing else to come to. Not by pivot_root, which walks through all threads of the host.
 */
static int step_enter(struct inside *in)
{
	autoclose int tree = mount_clone(in->root_fd, "", AT_EMPTY_PATH | AT_RECURSIVE);
	if (tree < 0)
		return tree;
	if (setns(in->w->empty_mounts_fd, CLONE_NEWNS) < 0 || unshare(CLONE_NEWNS) < 0)
		return -errno;
	int r = mount_move_to(tree, "/");
	if (r < 0)
		return r;
	return fchdir(tree) < 0 || chroot(".") < 0 ? -errno : 0;
}

static int set_limits(void)
{
	struct rlimit none = {0, 0}, locked = {8u << 20, 8u << 20},
		      stack = {8u << 20, RLIM_INFINITY};
	if (setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_MEMLOCK, &locked) < 0)
		return -errno;
	/* The server's own stack limit may be anything; a hard one cannot be raised again. */
	if (setrlimit(RLIMIT_STACK, &stack) < 0 && errno != EPERM)
		return -errno;
	return 0;
}

static int step_identity(struct inside *in)
{
	if (sethostname("sandbox", strlen("sandbox")) < 0 || setdomainname("", 0) < 0)
		return -errno;
	int r = set_limits();
	if (r < 0)
		return r;
	setsid();
	setpriority(PRIO_PROCESS, 0, 0);
	/* Init goes last; where that may not be said, at least nothing of the server's is
	 * inherited. */
	if (fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "-500") < 0)
		fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "0");
	if (setns(in->b->userns_fd, CLONE_NEWUSER) < 0)
		return -errno;
	r = fd_write_file_at(in->sys_fd, "user/max_user_namespaces", "0");
	if (r < 0)
		return r;
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int step_seccomp(struct inside *in)
{
	/* Without no_new_privs, because sudo must work inside; our capability allows it. */
	in->b->netlink_fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER, in->w->filter);
	return in->b->netlink_fd < 0 ? -errno : 0;
}

/* Puts our six descriptors in their places, whatever numbers they had, and closes the rest. */
static int arrange_descriptors(struct inside *in, int *init_fd, int *report_fd)
{
	int wanted[] = {in->b->listen_fd, in->b->cgroup_fd, in->b->quota_fd, in->b->netlink_fd,
		in->w->init_fd, in->b->report_fd};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		wanted[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 64);
		if (wanted[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (dup3(wanted[i], INIT_LISTEN_FD + (int)i, i < 4 ? 0 : O_CLOEXEC) < 0)
			return -errno;
	*init_fd = INIT_LISTEN_FD + 4;
	*report_fd = INIT_LISTEN_FD + 5;
	int null_fd = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		if (dup2(null_fd, i) < 0)
			return -errno;
	return syscall(SYS_close_range, INIT_LISTEN_FD + 6, ~0u, 0) < 0 ? -errno : 0;
}

static int step_exec(struct inside *in)
{
	char number[32];
	const char *argv[] = {"bunker-init", NULL};
	const char *envp[] = {number, NULL};
	snprintf(number, sizeof number, "NETLINK=%llx", (unsigned long long)in->w->netlink_number);
	int init_fd = -1, report_fd = -1;
	int r = arrange_descriptors(in, &init_fd, &report_fd);
	if (r < 0)
		return r;
	in->b->report_fd = report_fd;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	syscall(SYS_execveat, init_fd, "", argv, envp, AT_EMPTY_PATH);
	return -errno;
}
