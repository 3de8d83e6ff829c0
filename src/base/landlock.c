#include "base/landlock.h"

#include <errno.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SCOPES_VERSION        6
#define SCOPE_ABSTRACT_SOCKET (1ULL << 0)

#define ALL_V1   ((1ULL << 13) - 1)
#define REFER    (1ULL << 13)
#define TRUNCATE (1ULL << 14)

_Static_assert(LANDLOCK_TO_READ == (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR),
	"as the kernel numbers them");

int landlock_version(void)
{
	long v = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	return v < 0 ? 0 : (int)v;
}

static uint64_t known_accesses(void)
{
	int version = landlock_version();
	return ALL_V1 | (version >= 2 ? REFER : 0) | (version >= 3 ? TRUNCATE : 0);
}

int landlock_begin(void)
{
	struct landlock_ruleset_attr attr = {.handled_access_fs = known_accesses()};
	long fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr.handled_access_fs, 0);
	return fd < 0 ? -errno : (int)fd;
}

int landlock_allow(int ruleset, int dir_fd, uint64_t access)
{
	struct landlock_path_beneath_attr rule = {
		.allowed_access = access & known_accesses() & ~(uint64_t)LANDLOCK_ACCESS_FS_EXECUTE,
		.parent_fd = dir_fd};
	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		       ? -errno
		       : 0;
}

int landlock_enforce(int ruleset)
{
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int landlock_scope_sockets(void)
{
	/* Debian's headers do not know the last two. */
	const struct {
		uint64_t handled_access_fs, handled_access_net, scoped;
	} attr = {.scoped = SCOPE_ABSTRACT_SOCKET};
	if (landlock_version() < SCOPES_VERSION)
		return 0;
	autoclose int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
	return fd < 0 ? -errno : landlock_enforce(fd);
}
