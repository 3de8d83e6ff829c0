/*
 * What a new process does between clone and exec: descriptors, limits, the second filter, groups,
 * user, capabilities, directory, in the order that the privileges need. It shares init's memory
 * unless it is a worker, so it changes nothing there but its own struct.
 */
#include "init/spawn.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
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

#define BTRFS_IOCTL_MAGIC 0x94

#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

#define LOAD(what)              BPF_STMT(BPF_LD | BPF_W | BPF_ABS, what)
#define IF_EQUAL(value, yes)    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, 0)
#define UNLESS_EQUAL(value, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, no)
#define ANSWER(action)          BPF_STMT(BPF_RET | BPF_K, action)
#define NUMBER                  offsetof(struct seccomp_data, nr)
/* The low half: all that the kernel looks at in an int. */
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))

/*
 * The sandbox's second filter: what needs a look at arguments that libseccomp cannot take. Refused
 * families of sockets answer as a kernel without them would, because libraries ask and go on.
 */
static int load_second_filter(void)
{
	struct sock_filter code[] = {
		LOAD(NUMBER),
		UNLESS_EQUAL(SYS_clone3, 1),
		ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
		UNLESS_EQUAL(SYS_prctl, 4),
		LOAD(ARGUMENT(0)),
		UNLESS_EQUAL(PR_SCHED_CORE, 1),
		ANSWER(SECCOMP_RET_ERRNO | EPERM),
		ANSWER(SECCOMP_RET_ALLOW),
		UNLESS_EQUAL(SYS_ioctl, 10),
		LOAD(ARGUMENT(1)),
		IF_EQUAL(TIOCSTI, 7), /* fakes keyboard input */
		IF_EQUAL(TIOCLINUX, 6),
		IF_EQUAL(FICLONE, 4),
		IF_EQUAL(FICLONERANGE, 3),
		IF_EQUAL(FIDEDUPERANGE, 2),
		/* All else of btrfs: a volume must not get subvolumes, which no quota knows. */
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
		IF_EQUAL(BTRFS_IOCTL_MAGIC << 8, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_ERRNO | EPERM),
		UNLESS_EQUAL(SYS_setsockopt, 9),
		LOAD(ARGUMENT(1)),
		UNLESS_EQUAL(SOL_SOCKET, 6),
		LOAD(ARGUMENT(2)),
		/* Compiled filters: the host has one pool of memory for them. */
		IF_EQUAL(SO_ATTACH_FILTER, 3),
		IF_EQUAL(SO_ATTACH_BPF, 2),
		IF_EQUAL(SO_ATTACH_REUSEPORT_CBPF, 1),
		UNLESS_EQUAL(SO_ATTACH_REUSEPORT_EBPF, 1),
		ANSWER(SECCOMP_RET_ERRNO | ENOPROTOOPT),
		ANSWER(SECCOMP_RET_ALLOW),
		UNLESS_EQUAL(SYS_socket, 6),
		LOAD(ARGUMENT(0)),
		IF_EQUAL(AF_UNIX, 4),
		IF_EQUAL(AF_INET, 3),
		IF_EQUAL(AF_INET6, 2),
		IF_EQUAL(AF_NETLINK, 2),
		ANSWER(SECCOMP_RET_ERRNO | EAFNOSUPPORT),
		ANSWER(SECCOMP_RET_ALLOW),
		LOAD(ARGUMENT(2)),
		IF_EQUAL(NETLINK_ROUTE, 1),
		ANSWER(SECCOMP_RET_ERRNO | EPROTONOSUPPORT),
		ANSWER(SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_LEN(code), .filter = code};
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static int child_limits(const struct start_request *request)
{
	struct rlimit none = {0, 0}, files = {request->fixed.open_files, request->fixed.open_files};
	if (setrlimit(RLIMIT_CORE, &none) < 0)
		return -1;
	return request->fixed.open_files ? setrlimit(RLIMIT_NOFILE, &files) : 0;
}

/* Raw calls: libc's wrappers would tell "all threads", which we are not. */
static int child_identity(const struct user *u)
{
	if (syscall(SYS_setgroups, (long)u->group_count, u->groups) < 0 ||
		syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0)
		return -1;
	return (int)syscall(SYS_setresuid, u->uid, u->uid, u->uid);
}

/*
 * The sandbox's root has no more than its bounding set, from here on and not only after the exec:
 * the directory, the program and a worker's paths are the caller's, and with init's capabilities
 * /proc/1 would be open to them.
 */
static int child_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &header, data) < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		uint32_t kept = (uint32_t)(init_kept_capabilities >> (i * 32));
		data[i].permitted &= kept;
		data[i].effective &= kept;
		data[i].inheritable = 0;
	}
	return (int)syscall(SYS_capset, &header, data);
}

bool child_is_inside(void)
{
	char path[PATH_MAX];
	return syscall(SYS_getcwd, path, sizeof path) > 0 && path[0] == '/';
}

static int child_descriptors(const struct child *c)
{
	for (int i = 0; i < 3; i++)
		if (dup2(c->stdio[i], i) < 0)
			return -1;
	if (c->control >= 0)
		return dup2(c->control, 3) < 0 ? -1 : (int)syscall(SYS_close_range, 4u, ~0u, 0u);
	/* A command's go with its exec: until then, the end of one of them tells init how far it
	 * is. */
	return (int)syscall(SYS_close_range, 3u, ~0u, CLOSE_RANGE_CLOEXEC);
}

static void child_fail(struct child *c, enum frame_stage stage)
{
	c->stage = stage;
	c->error = errno;
	_exit(127);
}

/* Everything that is the same for commands and workers, in the order that the privileges need. */
void child_become(struct child *c)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL); /* an ignored signal stays ignored across clone and exec */
	setsid();
	bool terminal = c->request->fixed.flags & FRAME_START_TERMINAL;
	if (child_descriptors(c) < 0 || (terminal && ioctl(0, TIOCSCTTY, 0) < 0) ||
		child_limits(c->request) < 0 || load_second_filter() < 0)
		child_fail(c, FRAME_STAGE_RESOURCES);
	if (child_identity(&c->user) < 0 || child_capabilities() < 0)
		child_fail(c, FRAME_STAGE_USER);
	const char *cwd = c->request->cwd;
	/* A missing home falls back to "/"; a missing requested directory is an error. */
	if (cwd[0] != '/' && chdir(c->user.home) < 0 && chdir("/") < 0)
		child_fail(c, FRAME_STAGE_CWD);
	if (cwd[0] && chdir(cwd) < 0)
		child_fail(c, FRAME_STAGE_CWD);
	if (!child_is_inside()) {
		errno = EACCES;
		child_fail(c, FRAME_STAGE_CWD);
	}
}

/*
 * As late as possible: init waits for the exec, and would wait with a sandbox whose time is used
 * up.
 */
void child_limit_time(struct child *c)
{
	if (write(INIT_QUOTA_FD, "0", 1) != 1)
		child_fail(c, FRAME_STAGE_RESOURCES);
}

static const char *child_path_variable(const char *const *envp)
{
	for (; *envp; envp++)
		if (strncmp(*envp, "PATH=", 5) == 0)
			return *envp + 5;
	return CHILD_DEFAULT_PATH;
}

void child_exec(const struct child *c)
{
	char *const *argv = (char *const *)c->request->argv;
	char *const *envp = (char *const *)c->envp;
	const char *file = argv[0];
	int error = ENOENT;
	if (file[0] == '\0' || strchr(file, '/')) {
		execve(file, argv, envp);
		return;
	}
	const char *p = child_path_variable(c->envp);
	for (;;) {
		char full[PATH_MAX];
		size_t len = strcspn(p, ":");
		int n = snprintf(full, sizeof full, "%.*s/%s", (int)len, len ? p : ".", file);
		if (n > 0 && (size_t)n < sizeof full) {
			execve(full, argv, envp);
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
		}
		if (p[len] == '\0')
			break;
		p += len + 1;
	}
	errno = error;
}

int child_main(void *arg)
{
	struct child *c = arg;
	child_become(c);
	child_limit_time(c);
	child_exec(c);
	child_fail(c, FRAME_STAGE_EXEC);
	return 127;
}
