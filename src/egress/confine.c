/*
 * What bunker-egress gives up before it is told anything: root, files, and every call but those
 * that moving bytes between sockets takes. It opens sockets of the internet's families only, and
 * can neither bind nor listen.
 */
#include <errno.h>
#include <grp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/landlock.h"
#include "confine/forbid.h"
#include "egress/egress.h"

/* clang-format off */
static const char *const calls[] = {
	"accept4", "connect", "getsockname", "getsockopt", "setsockopt", "shutdown", "close", "splice", "pipe2",
	"read", "write", "recvmsg", "recvfrom", "sendmsg", "sendto", "epoll_wait", "epoll_pwait", "epoll_ctl", "poll", "ppoll",
	"clock_gettime", "futex", "mmap", "munmap", "mremap", "mprotect", "madvise", "brk", "getrandom", "fcntl", "exit_group", "exit",
	"rt_sigreturn", "rt_sigprocmask", "rt_sigaction", "restart_syscall", "getpid", "gettid", "tgkill",
#if BUNKER_SANITIZED
	/* to write its report */
	"sigaltstack", "sched_yield", "readlink", "openat", "newfstatat", "prctl", "getrlimit", "prlimit64",
	"process_vm_readv", "uname", "ioctl", "tkill", "getuid", "geteuid", "dup", "lseek", "pread64",
#endif
};
/* clang-format on */

static int restrict_files(void)
{
	if (landlock_version() == 0)
		return 0;
	autoclose int ruleset = landlock_begin();
	return ruleset < 0 ? ruleset : landlock_enforce(ruleset);
}

int egress_confine(uid_t uid)
{
	const struct rlimit none = {0, 0};
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
		setresuid(uid, uid, uid) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_NPROC, &none) < 0)
		return -errno;
	int r = restrict_files();
	if (r == 0)
		r = landlock_scope_sockets();
	return r < 0 ? r : allow_calls_and_internet(calls, ARRAY_LEN(calls));
}
