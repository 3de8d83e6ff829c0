/* 15-19, 70: mounts, by the old calls and the new, and devices. */
#include "attempt.h"

#include <linux/mount.h>
#include <sched.h>
#include <sys/sysmacros.h>

/* Not from <sys/mount.h>: it and <linux/mount.h> define the same names. */
extern int mount(const char *, const char *, const char *, unsigned long, const void *);
extern int umount2(const char *, int);
#define MNT_DETACH 2

static char place[] = "/tmp/attemptXXXXXX";

/* A directory to mount on; in a control, in a mount namespace that ends with this child. */
static bool prepare(void)
{
	if (is_control &&
		(unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return false;
	return mkdtemp(place) != NULL;
}

static enum outcome finish(long r)
{
	enum outcome outcome = judge(r);
	umount2(place, MNT_DETACH);
	rmdir(place);
	return outcome;
}

/* ---- 15 ---- */

static enum outcome try_mount(const struct attempt *a)
{
	const char *data = strcmp(a->text, "overlay") == 0  ? "lowerdir=/usr:/etc"
			   : strcmp(a->text, "cgroup") == 0 ? "memory"
							    : NULL;
	if (!prepare())
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	int r = mount("attempt", place, a->text, 0, data);
	/* A host whose controllers are on v2 refuses v1 in this way. */
	if (r < 0 && is_control && strcmp(a->text, "cgroup") == 0)
		errno = ENODEV;
	return finish(r);
}

static enum outcome try_bind(const struct attempt *a)
{
	if (!prepare())
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	return finish(mount(a->text, place, NULL, MS_BIND | (unsigned long)a->arg, NULL));
}

static enum outcome try_remount(const struct attempt *a)
{
	if (!prepare())
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	rmdir(place);
	return judge(mount(NULL, a->text, NULL, (unsigned long)a->arg, NULL));
}

/* ---- 16 ---- */

static enum outcome try_fsopen(const struct attempt *a)
{
	int fs = (int)syscall(SYS_fsopen, a->text, 0);
	if (fs < 0)
		return judge(fs);
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return judge(-1);
	return judge(syscall(SYS_fsmount, fs, 0, 0));
}

static enum outcome try_fspick(const struct attempt *a)
{
	return judge(syscall(SYS_fspick, AT_FDCWD, a->text, 0));
}

static enum outcome try_open_tree(const struct attempt *a)
{
	return judge(syscall(SYS_open_tree, AT_FDCWD, a->text, OPEN_TREE_CLONE));
}

static enum outcome try_move_mount(const struct attempt *a)
{
	(void)a;
	if (!prepare())
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	int tree = (int)syscall(SYS_open_tree, AT_FDCWD, "/usr", OPEN_TREE_CLONE);
	if (tree < 0)
		tree = open("/proc", O_PATH);
	return finish(syscall(SYS_move_mount, tree, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH));
}

static enum outcome try_mount_setattr(const struct attempt *a)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOATIME, .attr_clr = MOUNT_ATTR__ATIME};
	if (!prepare())
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	rmdir(place);
	return judge(syscall(SYS_mount_setattr, AT_FDCWD, a->text, 0, &attr, sizeof attr));
}

/* ---- 17 ---- */

static enum outcome try_umount(const struct attempt *a)
{
	if (!prepare())
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	rmdir(place);
	return judge(umount2(a->text, (int)a->arg));
}

/* ---- 18, 19 ---- */

static enum outcome try_device(const struct attempt *a)
{
	int fd = open(a->text, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	/* A host that is a guest itself may be kept from its own disk. */
	if (fd < 0 && errno == EPERM && is_control)
		errno = ENODEV;
	return judge_path(fd);
}

/* major << 16 | minor << 4 | kind */
#define NODE(major, minor)  ((long)(major) << 16 | (minor) << 4)
#define BLOCK(major, minor) (NODE(major, minor) | 1)

static enum outcome try_mknod(const struct attempt *a)
{
	char path[256];
	mode_t kind = a->arg & 1 ? S_IFBLK : S_IFCHR;
	snprintf(path, sizeof path, "%s/attempt-%d", is_control ? "/tmp" : a->text, (int)getpid());
	int r = mknod(path, kind | 0666,
		makedev((unsigned)(a->arg >> 16), (unsigned)(a->arg >> 4 & 0xfff)));
	enum outcome outcome = judge(r);
	unlink(path);
	return outcome;
}

/* ---- 70 ---- */

/* The control opens, and does not write. */
static enum outcome try_release_agent(const struct attempt *a)
{
	char path[256];
	if (is_control)
		return judge_path(open(a->text, O_WRONLY));
	if (!prepare())
		return say(ERROR, "cannot prepare: %s", strerror(errno));
	if (mount("attempt", place, "cgroup", 0, "rdma") < 0 &&
		mount("attempt", place, "cgroup", 0, "memory") < 0)
		return finish(-1);
	snprintf(path, sizeof path, "%s/release_agent", place);
	return finish(open(path, O_WRONLY));
}

static const struct attempt attempts[] = {
	{15, "mount-proc", try_mount, .text = "proc"},
	{15, "mount-sysfs", try_mount, .text = "sysfs"},
	{15, "mount-cgroup", try_mount, .text = "cgroup"},
	{15, "mount-cgroup2", try_mount, .text = "cgroup2"},
	{15, "mount-bpf", try_mount, .text = "bpf"},
	{15, "mount-debugfs", try_mount, .text = "debugfs"},
	{15, "mount-tracefs", try_mount, .text = "tracefs"},
	{15, "mount-securityfs", try_mount, .text = "securityfs"},
	{15, "mount-devtmpfs", try_mount, .text = "devtmpfs"},
	{15, "mount-devpts", try_mount, .text = "devpts"},
	{15, "mount-mqueue", try_mount, .text = "mqueue"},
	{15, "mount-tmpfs", try_mount, .text = "tmpfs"},
	{15, "mount-overlay", try_mount, .text = "overlay"},
	{15, "bind-root", try_bind, .text = "/"},
	{15, "bind-everything", try_bind, .text = "/", .arg = MS_REC},
	{15, "bind-proc", try_bind, .text = "/proc"},
	{15, "remount-dev-writable", try_remount, .text = "/dev", .arg = MS_REMOUNT | MS_BIND},
	{15, "remount-proc-writable", try_remount, .text = "/proc", .arg = MS_REMOUNT | MS_BIND},
	{15, "remount-root-with-devices", try_remount, .text = "/", .arg = MS_REMOUNT | MS_BIND},
	{15, "make-shared", try_remount, .text = "/", .arg = MS_SHARED | MS_REC},
	{16, "fsopen-tmpfs", try_fsopen, .text = "tmpfs"},
	{16, "fsopen-proc", try_fsopen, .text = "proc"},
	{16, "fsopen-cgroup2", try_fsopen, .text = "cgroup2"},
	{16, "fspick", try_fspick, .text = "/"},
	{16, "open-tree", try_open_tree, .text = "/"},
	{16, "open-tree-of-usr", try_open_tree, .text = "/usr"},
	{16, "move-mount", try_move_mount},
	{16, "mount-setattr", try_mount_setattr, .text = "/"},
	{17, "umount-proc", try_umount, .text = "/proc", .arg = MNT_DETACH},
	{17, "umount-dev-pts", try_umount, .text = "/dev/pts", .arg = MNT_DETACH},
	{17, "umount-mask", try_umount, .text = "/proc/sys", .arg = MNT_DETACH,
		.no_control =
			"nothing is mounted there on a host; umount-proc shows that it can be done"},
	{17, "umount-mask-of-keys", try_umount, .text = "/proc/keys", .arg = MNT_DETACH,
		.no_control =
			"nothing is mounted there on a host; umount-proc shows that it can be done"},
	{18, "open-fuse", try_device, .text = "/dev/fuse"},
	{18, "open-kvm", try_device, .text = "/dev/kvm"},
	{18, "open-mem", try_device, .text = "/dev/mem"},
	{18, "open-port", try_device, .text = "/dev/port"},
	{18, "open-kmsg", try_device, .text = "/dev/kmsg"},
	{18, "open-loop-control", try_device, .text = "/dev/loop-control"},
	{18, "open-tun", try_device, .text = "/dev/net/tun"},
	{18, "open-vsock", try_device, .text = "/dev/vsock"},
	{18, "open-sda", try_device, .text = "/dev/sda"},
	{18, "open-vda", try_device, .text = "/dev/vda"},
	{18, "open-device-mapper", try_device, .text = "/dev/mapper/control"},
	{18, "open-vhost-net", try_device, .text = "/dev/vhost-net"},
	{18, "open-uinput", try_device, .text = "/dev/uinput"},
	{18, "may-open-null", try_device, .text = "/dev/null"},
	{19, "mknod-sda", try_mknod, .text = "/tmp", .arg = BLOCK(8, 0)},
	{19, "mknod-vda", try_mknod, .text = "/tmp", .arg = BLOCK(254, 0)},
	{19, "mknod-mem", try_mknod, .text = "/tmp", .arg = NODE(1, 1)},
	{19, "mknod-kvm", try_mknod, .text = "/tmp", .arg = NODE(10, 232)},
	{19, "mknod-fuse", try_mknod, .text = "/tmp", .arg = NODE(10, 229)},
	{19, "mknod-null", try_mknod, .text = "/tmp", .arg = NODE(1, 3)},
	{19, "mknod-whiteout", try_mknod, .text = "/tmp", .arg = NODE(0, 0)},
	{19, "mknod-in-shm", try_mknod, .text = "/dev/shm", .arg = NODE(1, 1)},
	{19, "mknod-in-dev", try_mknod, .text = "/dev", .arg = NODE(1, 1)},
	{70, "release-agent", try_release_agent, .text = "/sys/fs/cgroup/memory/release_agent"},
};

int main(int argc, char **argv)
{
	return attempts_main(argc, argv, attempts, COUNT(attempts));
}
