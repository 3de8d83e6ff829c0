#include "server/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "keeper/forbid.h"

#define LANDLOCK_ALL_V1 ((1ULL << 13) - 1)
#define LANDLOCK_REFER  (1ULL << 13)
#define LANDLOCK_TRUNC  (1ULL << 14)

int confine_landlock_version(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return v < 0 ? 0 : (int)v;
}

static int allow_below(int ruleset, const char *path, __u64 access)
{
	autoclose int fd = open(path, O_PATH | O_CLOEXEC);
	struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
	if (fd < 0)
		return -errno;
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

/* The leak checker of a sanitized build looks at its own process with ptrace and through /proc. */
static int allow_leak_checker(int ruleset)
{
#if BUNKER_SANITIZED
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return allow_below(
		ruleset, "/proc", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR);
#else
	(void)ruleset;
	return 0;
#endif
}

static int restrict_files(const char *const *writable)
{
	int version = confine_landlock_version();
	if (version == 0)
		return 0;
	__u64 all = LANDLOCK_ALL_V1;
	if (version >= 2)
		all |= LANDLOCK_REFER;
	if (version >= 3)
		all |= LANDLOCK_TRUNC;
	struct landlock_ruleset_attr attr = {.handled_access_fs = all};
	autoclose int ruleset =
		(int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0);
	if (ruleset < 0)
		return -errno;
	__u64 access = all & ~(__u64)LANDLOCK_ACCESS_FS_EXECUTE;
	for (; *writable; writable++) {
		int allowed = allow_below(ruleset, *writable, access);
		if (allowed < 0)
			return allowed;
	}
	int r = allow_leak_checker(ruleset);
	if (r < 0)
		return r;
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int confine_front(uid_t uid, const char *const *writable, struct error *e)
{
	static const char *const identity[] = {
		"setuid", "setresuid", "setgid", "setresgid", "setgroups"};
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		return error_set_errno(e, errno, "cannot give up root");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return error_set_errno(e, errno, "cannot set no_new_privs");
	int r = restrict_files(writable);
	if (r < 0)
		return error_set_errno(e, r, "cannot confine the front with Landlock");
	r = forbid_calls(identity, ARRAY_LEN(identity));
	return r < 0 ? error_set_errno(e, r, "cannot confine the front with seccomp") : 0;
}
