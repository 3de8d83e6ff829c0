/*
 * The system calls a sandbox may use. An allow-list: what is not named answers ENOSYS, so that
 * calls the kernel gains later are closed until somebody opens them here. Foreign ABIs (i386, x32)
 * are killed.
 *
 * The filter is loaded once per sandbox, before init starts, and inherited. Its shape is
 * libseccomp's binary tree: a linear list of this length costs a millisecond to load. What needs an
 * argument check that libseccomp cannot say, and clone3, are in init's second filter
 * (init/spawn.c).
 */
#include "warden/warden.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"

/* In groups, not one a line. */
/* clang-format off */
static const char *const allowed_calls[] = {
	/* files */
	"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat",
	"dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir",
	"fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr",
	"flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync",
	"ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "getxattrat",
	"inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "ioctl",
	"lchown", "lgetxattr", "link", "linkat", "listxattr", "listxattrat", "llistxattr",
	"lremovexattr", "lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod", "mknodat",
	"newfstatat", "open", "openat", "openat2", "pread64", "preadv", "preadv2", "pwrite64",
	"pwritev", "pwritev2", "read", "readahead", "readlink", "readlinkat", "readv",
	"removexattr", "removexattrat", "rename", "renameat", "renameat2", "rmdir", "sendfile",
	"setxattr", "setxattrat", "splice", "stat", "statfs", "statx", "symlink", "symlinkat",
	"sync", "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlink", "unlinkat",
	"utime", "utimensat", "utimes", "vmsplice", "write", "writev", "cachestat",
	/* memory */
	"brk", "get_mempolicy", "madvise", "map_shadow_stack", "membarrier", "memfd_create",
	"mincore", "mlock", "mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync",
	"munlock", "munlockall", "munmap", "pkey_alloc", "pkey_free", "pkey_mprotect",
	"process_madvise", "process_mrelease", "remap_file_pages",
	/* processes and their rights */
	"alarm", "arch_prctl", "capget", "capset", "clone3", "execve", "execveat", "exit",
	"exit_group", "fork", "get_robust_list", "getegid", "geteuid", "getgid", "getgroups",
	"getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid",
	"getrlimit", "getrusage", "getsid", "gettid", "getuid", "ioprio_get", "ioprio_set", "kcmp",
	"kill", "landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self", "pause",
	"pidfd_getfd", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64", "process_vm_readv",
	"process_vm_writev", "ptrace", "rseq", "sched_get_priority_max", "sched_get_priority_min",
	"sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler",
	"sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam",
	"sched_setscheduler", "sched_yield", "seccomp", "set_robust_list", "set_tid_address",
	"setfsgid", "setfsuid", "setgid", "setgroups", "setpgid", "setpriority", "setregid",
	"setresgid", "setresuid", "setreuid", "setrlimit", "setsid", "setuid", "tgkill", "tkill",
	"vfork", "wait4", "waitid", "chroot",
	/* signals and time */
	"clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday",
	"nanosleep", "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask",
	"rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
	"setitimer", "sigaltstack", "signalfd", "signalfd4", "time", "timer_create",
	"timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime", "timerfd_create",
	"timerfd_gettime", "timerfd_settime", "times",
	/* waiting, pipes, events */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait",
	"epoll_pwait2", "epoll_wait", "epoll_wait_old", "eventfd", "eventfd2", "futex",
	"futex_requeue", "futex_wait", "futex_waitv", "futex_wake", 
	"pipe", "pipe2", "poll", "ppoll",
	"pselect6", "select",
	/* sockets, once made */
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt",
	"listen", "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt",
	"shutdown",
	/* System V and POSIX queues, in the sandbox's own ipc namespace */
	"mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink",
	"msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "shmat",
	"shmctl", "shmdt", "shmget",
	/* other calls that programs make at start */
	"getcpu", "getrandom", "sysinfo", "uname", "ustat",
};
/* clang-format on */

static const int allowed_families[] = {AF_UNIX, AF_INET, AF_INET6};

#define CLONE_NAMESPACES                                                                           \
	((uint64_t)CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |   \
		CLONE_NEWPID | CLONE_NEWNET)

static int seccomp_allow(
	scmp_filter_ctx ctx, const char *name, unsigned count, struct scmp_arg_cmp *args)
{
	int nr = seccomp_syscall_resolve_name(name);
	if (nr == __NR_SCMP_ERROR)
		return 0; /* libseccomp is older than the call: it stays closed */
	int r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, nr, count, args);
	return r == -EDOM || r == -EOPNOTSUPP ? 0 : r;
}

static int allow_with_arguments(scmp_filter_ctx ctx, uint64_t number)
{
	int r = seccomp_allow(ctx, "clone", 1,
		&(struct scmp_arg_cmp){0, SCMP_CMP_MASKED_EQ, CLONE_NAMESPACES, 0});
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed_families); i++)
		r = seccomp_allow(ctx, "socket", 1,
			&(struct scmp_arg_cmp){0, SCMP_CMP_EQ, (uint64_t)allowed_families[i], 0});
	/* Init makes these, and counts them (init/netlink.c); it says so by the number. */
	const struct scmp_arg_cmp of_init[] = {{0, SCMP_CMP_EQ, AF_NETLINK, 0},
		{2, SCMP_CMP_EQ, NETLINK_ROUTE, 0}, {3, SCMP_CMP_EQ, number, 0}};
	const struct scmp_arg_cmp of_others[] = {
		of_init[0], of_init[1], {3, SCMP_CMP_NE, number, 0}};
	if (r == 0)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3, of_init);
	if (r == 0)
		r = seccomp_rule_add_array(ctx, SCMP_ACT_NOTIFY, SCMP_SYS(socket), 3, of_others);
	if (r == 0)
		r = seccomp_allow(
			ctx, "socketpair", 1, &(struct scmp_arg_cmp){0, SCMP_CMP_EQ, AF_UNIX, 0});
	if (r == 0)
		r = seccomp_allow(
			ctx, "personality", 1, &(struct scmp_arg_cmp){0, SCMP_CMP_EQ, 0, 0});
	if (r == 0)
		r = seccomp_allow(ctx, "personality", 1,
			&(struct scmp_arg_cmp){0, SCMP_CMP_EQ, 0xffffffffu, 0});
	return r;
}

static int add_rules(scmp_filter_ctx ctx, uint64_t number)
{
	int r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(allowed_calls); i++)
		r = seccomp_allow(ctx, allowed_calls[i], 0, NULL);
	return r < 0 ? r : allow_with_arguments(ctx, number);
}

/* libseccomp exports to a descriptor only. */
static int export_program(scmp_filter_ctx ctx, struct sock_fprog **ret)
{
	autoclose int fd = memfd_create("filter", MFD_CLOEXEC);
	autobuf code = {0};
	if (fd < 0)
		return -errno;
	int r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		return r;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	r = fd_read_all(fd, &code, 64 * 1024);
	if (r < 0)
		return r;
	struct sock_fprog *program = calloc(1, sizeof *program);
	if (!program)
		return -ENOMEM;
	program->len = (unsigned short)(code.len / sizeof(struct sock_filter));
	program->filter = (struct sock_filter *)(void *)take_ptr(code.data);
	*ret = program;
	return 0;
}

int seccomp_build(struct warden *w, struct error *e)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (getrandom(&w->netlink_number, sizeof w->netlink_number, 0) < 0)
		return error_set_errno(e, errno, "cannot get random numbers");
	int r = ctx ? add_rules(ctx, w->netlink_number) : -ENOMEM;
	if (r == 0)
		r = export_program(ctx, &w->filter);
	seccomp_release(ctx);
	return r < 0 ? error_set_errno(e, r, "cannot build the seccomp filter") : 0;
}
