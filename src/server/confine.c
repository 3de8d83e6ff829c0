#include "server/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "confine/forbid.h"
#include "base/landlock.h"

static int allow_below(int ruleset, const char *path, uint64_t access)
{
	autoclose int fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : landlock_allow(ruleset, fd, access);
}

/* The leak checker of a sanitized build looks at its own process with ptrace and through /proc. */
static int allow_leak_checker(int ruleset)
{
#if BUNKER_SANITIZED
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	return allow_below(ruleset, "/proc", LANDLOCK_TO_READ);
#else
	(void)ruleset;
	return 0;
#endif
}

static int restrict_files(const char *const *writable)
{
	if (landlock_version() == 0)
		return 0;
	autoclose int ruleset = landlock_begin();
	if (ruleset < 0)
		return ruleset;
	for (; *writable; writable++) {
		int allowed = allow_below(ruleset, *writable, LANDLOCK_TO_WRITE);
		if (allowed < 0)
			return allowed;
	}
	int r = allow_leak_checker(ruleset);
	return r < 0 ? r : landlock_enforce(ruleset);
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
