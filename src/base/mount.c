#include "base/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

int mount_clone(int dir_fd, const char *path, unsigned flags)
{
	return fd_or_errno(
		syscall(SYS_open_tree, dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags));
}

int mount_set_attributes(int fd, uint64_t set, int userns_fd)
{
	struct mount_attr attr = {.attr_set = set};
	if (userns_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns_fd;
	}
	return fd_or_errno(syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr));
}

int mount_move_to(int fd, const char *path)
{
	return fd_or_errno(
		syscall(SYS_move_mount, fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH));
}

int mount_open_point(int dir_fd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	return fd_or_errno(syscall(SYS_openat2, dir_fd, path, &how, sizeof how));
}

int mount_move_onto(int fd, int target)
{
	return fd_or_errno(syscall(SYS_move_mount, fd, "", target, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH));
}

int mount_move_below(int fd, int dir_fd, const char *path)
{
	autoclose int target = mount_open_point(dir_fd, path);
	if (target < 0)
		return target;
	return mount_move_onto(fd, target);
}

int mount_new(const char *type, const struct mount_option *options, unsigned attributes)
{
	autoclose int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	for (; options->key; options++) {
		unsigned command = options->value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
		if (syscall(SYS_fsconfig, fs, command, options->key, options->value, 0) < 0)
			return -errno;
	}
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return fd_or_errno(syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes));
}

/* In a child that shares our descriptors: puts its new namespace in the place of fd. */
static int replace_by_empty(int fd, const char *path)
{
	autoclose int empty = mount_new("tmpfs",
		(struct mount_option[]){{"size", "4096"}, {"mode", "0"}, {NULL, NULL}},
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (empty < 0 || unshare(CLONE_NEWNS) < 0)
		return empty < 0 ? empty : -errno;
	autoclose int own = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	int r = own < 0 ? -errno : mount_move_to(empty, path);
	if (r < 0)
		return r;
	if (chdir(path) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
		umount2(".", MNT_DETACH) < 0 || dup3(own, fd, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

int mount_empty_namespace(const char *path)
{
	/* No signal tells of its end, which a caller could take for another child's. */
	struct clone_args args = {.flags = CLONE_FILES};
	int status = 0;
	autoclose int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
	if (pid == 0)
		_exit(-replace_by_empty(fd, path));
	if (pid < 0 || waitpid(pid, &status, __WCLONE) < 0)
		return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? take_fd(&fd)
	       : WIFEXITED(status)                           ? -WEXITSTATUS(status)
							     : -EIO;
}
