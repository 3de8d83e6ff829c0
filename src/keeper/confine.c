/*
 * What the keeper gives up once its pool is mounted: the network, every capability that is not
 * about files, and the calls with which root becomes more than that. What it cannot give up is
 * CAP_SYS_ADMIN: the ioctls of btrfs and the overlay's own attributes need it.
 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "confine/capabilities.h"
#include "confine/forbid.h"
#include "base/landlock.h"

#define NOBODY 65534

/* Not CAP_MKNOD: a whiteout is no device, and a device has no business on a disk. */
static const unsigned kept_capabilities[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
	CAP_FOWNER, CAP_FSETID, CAP_SETUID, CAP_SETGID, CAP_SETFCAP, CAP_SYS_ADMIN,
	CAP_SYS_RESOURCE};

/* Becomes `nobody` with the right to read everything; overlay attributes need CAP_SYS_ADMIN. */
static int become_reader(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgroups(0, NULL) < 0 ||
		setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return -errno;
	data[0].permitted = data[0].effective = 1u << CAP_DAC_READ_SEARCH | 1u << CAP_SYS_ADMIN;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* Restricts opening to reads below these directories. */
static int keeper_confine_restrict_files(const int *dirs, size_t count)
{
	if (landlock_version() == 0)
		return 0;
	autoclose int ruleset = landlock_begin();
	int r = ruleset < 0 ? ruleset : 0;
	for (size_t i = 0; r == 0 && i < count; i++)
		if (dirs[i] >= 0)
			r = landlock_allow(ruleset, dirs[i], LANDLOCK_TO_READ);
	return r < 0 ? r : landlock_enforce(ruleset);
}

/* With these alone CAP_SYS_ADMIN gives nothing but the overlay's attributes. */
/* clang-format off */
static const char *const reader_calls[] = {
	"openat", "openat2", "close", "dup", "fcntl", "read", "pread64", "lseek", "write", "poll",
	"ppoll", "fstat", "newfstatat", "statx", "readlinkat", "getdents64", "fgetxattr", "brk",
	"mmap", "munmap", "mremap", "mprotect", "madvise", "futex", "getrandom", "rt_sigreturn",
	"rt_sigprocmask", "restart_syscall", "clock_gettime", "getpid", "gettid", "tgkill", "exit",
	"exit_group",
#if BUNKER_SANITIZED
	/* to write its report */
	"sigaltstack", "sched_yield", "readlink", "prctl", "rt_sigaction", "getrlimit", "prlimit64",
	"process_vm_readv", "uname", "ioctl", "tkill", "getuid", "geteuid",
#endif
};
/* clang-format on */

int confine_reader(const int *dirs, size_t count)
{
	/* A reader handles hostile data, so the OOM killer may take it early. */
	(void)fd_write_file_at(AT_FDCWD, "/proc/self/oom_score_adj", "500");
	int r = become_reader();
	if (r == 0)
		r = keeper_confine_restrict_files(dirs, count);
	return r < 0 ? r : allow_calls(reader_calls, ARRAY_LEN(reader_calls));
}

int confine_keeper(struct error *e)
{
	static const char *const network[] = {"socket", "connect"};
	if (unshare(CLONE_NEWNET) < 0)
		return error_set_errno(e, errno, "cannot leave the network");
	int r = capabilities_keep(kept_capabilities, ARRAY_LEN(kept_capabilities));
	if (r < 0)
		return error_set_errno(e, r, "cannot drop capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set_errno(e, errno, "cannot set no_new_privs");
	r = forbid_calls(network, ARRAY_LEN(network));
	return r < 0 ? error_set_errno(e, r, "cannot confine the keeper with seccomp") : 0;
}
