/*
 * The way from a fresh clone to a sandbox's init, as a list of steps. Each either works or ends the
 * process with its name and errno in the report; nothing untrusted runs before the last one.
 *
 * Mounts are made by descriptor (fsopen, open_tree, move_mount), and every mount point inside the
 * new root is opened with RESOLVE_IN_ROOT and without following links: what an earlier tenant of
 * the disk left there cannot send a mount elsewhere. The user namespace is entered last, so the
 * mount, network and other namespaces belong to the host's root and nobody inside can change them.
 */
#include "warden/warden.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/seccomp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define INIT_LISTEN_FD 3
#define INIT_CGROUP_FD 4
#define SHM_MAX        (64 << 20)

#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

struct inside {
	struct warden *w;
	struct boot *b;
	int root_fd; /* the sandbox's root, once mounted */
	int proc_fd;
};

static int step_join_cgroup(struct inside *in);
static int step_network(struct inside *in);
static int step_layers(struct inside *in);
static int step_root(struct inside *in);
static int step_usr(struct inside *in);
static int step_dev(struct inside *in);
static int step_proc(struct inside *in);
static int step_mask(struct inside *in);
static int step_volumes(struct inside *in);
static int step_resolver(struct inside *in);
static int step_pivot(struct inside *in);
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
	{WARDEN_STEP_RESOLVER, step_resolver},
	{WARDEN_STEP_PIVOT, step_pivot},
	{WARDEN_STEP_IDENTITY, step_identity},
	{WARDEN_STEP_SECCOMP, step_seccomp},
	{WARDEN_STEP_EXEC, step_exec},
};

void inside_main(struct warden *w, struct boot *b)
{
	struct inside in = {.w = w, .b = b, .root_fd = -1, .proc_fd = -1};
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

/* ---- mounts ---- */

static int open_tree_at(int dir_fd, const char *path, unsigned flags)
{
	int fd = (int)syscall(
		SYS_open_tree, dir_fd, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
	return fd < 0 ? -errno : fd;
}

static int set_attributes(int fd, uint64_t set, int userns_fd)
{
	struct mount_attr attr = {.attr_set = set};
	if (userns_fd >= 0) {
		attr.attr_set |= MOUNT_ATTR_IDMAP;
		attr.userns_fd = (uint64_t)userns_fd;
	}
	return syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0 ? -errno
											 : 0;
}

static int move_to_path(int fd, const char *path)
{
	return syscall(SYS_move_mount, fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno
											    : 0;
}

/* A directory or file below the new root, with nothing followed on the way. */
static int open_inside(int dir_fd, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof how);
	return fd < 0 ? -errno : fd;
}

static int move_inside(int fd, int dir_fd, const char *path)
{
	autoclose int target = open_inside(dir_fd, path);
	if (target < 0)
		return target;
	return syscall(SYS_move_mount, fd, "", target, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

struct option {
	const char *key, *value; /* value NULL: a flag */
};

/* A new mount of a filesystem, detached; options end with a NULL key. */
static int new_mount(const char *type, const struct option *options, unsigned attributes)
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
	int fd = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
	return fd < 0 ? -errno : fd;
}

/* A clone of a host directory, seen through the sandbox's uids, at data/stage/NAME. */
static int stage_tree(
	struct inside *in, int dir_fd, const char *source, const char *name, uint64_t attributes)
{
	autoclose int fd = open_tree_at(dir_fd, source, *source ? 0 : AT_EMPTY_PATH);
	if (fd < 0)
		return fd;
	int r = set_attributes(fd, attributes, in->b->userns_fd);
	return r < 0 ? r : move_to_path(fd, name);
}

static int stage_layer(struct inside *in, const char *source, const char *name, uint64_t attributes)
{
	return stage_tree(in, AT_FDCWD, source, name, attributes);
}

/* What was unpacked there may be hostile: not even its directory is taken on trust. */
static int stage_image(struct inside *in)
{
	char path[ID_SIZE + 16];
	snprintf(path, sizeof path, "%s/root/image", in->b->root);
	autoclose int layers = open("../disks/layers", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int image = layers < 0 ? -errno : open_inside(layers, path);
	return image < 0 ? image : stage_tree(in, image, "", "skeleton", MOUNT_ATTR_RDONLY);
}

/*
 * Overlayfs works on its upper layer with the rights of whoever mounted it. The layer is idmapped,
 * so that must be a uid it knows: the sandbox's root, with all our capabilities back in force.
 */
static int act_as(uid_t uid)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];
	syscall(SYS_setfsgid, uid);
	syscall(SYS_setfsuid, uid);
	if (syscall(SYS_capget, &header, data) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_LEN(data); i++)
		data[i].effective = data[i].permitted;
	return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/*
 * Called in data/stage, with relative names: they are what /proc/mounts shows inside. Not
 * volatile, because the disk is mounted again when a sandbox resumes.
 */
static int overlay(struct inside *in, const char *lower, const char *upper)
{
	char upper_path[64], work_path[64];
	snprintf(upper_path, sizeof upper_path, "disk/%s", upper);
	snprintf(work_path, sizeof work_path, "disk/%s.work", upper);
	struct option options[] = {{"source", "sandbox"}, {"lowerdir", lower},
		{"upperdir", upper_path}, {"workdir", work_path}, {"metacopy", "off"},
		{"redirect_dir", "on"}, {NULL, NULL}};
	int r = act_as(in->b->uid_base);
	int fd = r < 0 ? r : new_mount("overlay", options, MOUNT_ATTR_NODEV);
	r = act_as(0);
	if (r < 0 && fd >= 0) {
		close(fd);
		return r;
	}
	return fd;
}

/* ---- the steps ---- */

static int step_join_cgroup(struct inside *in)
{
	int r = cgroup_join_v1(in->w, in->b->id);
	if (r < 0)
		return r;
	/* Only now: a membership that is set later would show its host path inside. */
	return unshare(CLONE_NEWCGROUP) < 0 ? -errno : 0;
}

static int step_network(struct inside *in)
{
	struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	if (in->b->host_network)
		return 0;
	autoclose int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request) < 0)
		return -errno;
	/* The network namespace is not the sandbox's own, so its root needs this for port 80. */
	return fd_write_file_at(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

static int step_layers(struct inside *in)
{
	char disk[64];
	snprintf(disk, sizeof disk, "../disks/boxes/%s", in->b->id);
	if (chdir(in->w->data) < 0 || chdir("stage") < 0)
		return -errno;
	int r = stage_layer(in, disk, "disk", 0);
	if (r == 0 && in->b->root[0])
		return stage_image(in);
	if (r == 0)
		r = stage_layer(in, in->w->disks.template_path, "skeleton", MOUNT_ATTR_RDONLY);
	if (r == 0)
		r = stage_layer(in, "/usr", "usr", MOUNT_ATTR_RDONLY);
	return r;
}

static int step_root(struct inside *in)
{
	autoclose int fd = overlay(in, "skeleton", "root");
	if (fd < 0)
		return fd;
	int r = move_to_path(fd, "root");
	if (r < 0)
		return r;
	in->root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return in->root_fd < 0 ? -errno : 0;
}

/* An image brings its own. */
static int step_usr(struct inside *in)
{
	if (in->b->root[0])
		return 0;
	autoclose int fd = overlay(in, "usr", "usr");
	return fd < 0 ? fd : move_inside(fd, in->root_fd, "usr");
}

static int mount_pts(struct inside *in)
{
	char gid[16];
	snprintf(gid, sizeof gid, "%u", in->b->uid_base + 5);
	autoclose int fd = new_mount("devpts",
		(struct option[]){{"gid", gid}, {"mode", "0620"}, {"ptmxmode", "0666"},
			{"max", "256"}, {NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? fd : move_inside(fd, in->root_fd, "dev/pts");
}

static int mount_shm(struct inside *in)
{
	char owner[16], size[24];
	int64_t half = in->b->limits.memory / 2;
	snprintf(owner, sizeof owner, "%u", in->b->uid_base);
	/* Below the memory limit: full, it must answer ENOSPC and not cost processes their lives.
	 */
	snprintf(size, sizeof size, "%lld", (long long)(half < SHM_MAX ? half : SHM_MAX));
	autoclose int fd = new_mount("tmpfs",
		(struct option[]){{"size", size}, {"nr_inodes", "65536"}, {"mode", "1777"},
			{"uid", owner}, {"gid", owner}, {NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? fd : move_inside(fd, in->root_fd, "dev/shm");
}

static const struct {
	const char *name;
	unsigned major, minor;
} nodes[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9},
	{"tty", 5, 0}};

static const struct {
	const char *name, *target;
} dev_links[] = {{"fd", "/proc/self/fd"}, {"stdin", "/proc/self/fd/0"},
	{"stdout", "/proc/self/fd/1"}, {"stderr", "/proc/self/fd/2"}, {"ptmx", "pts/ptmx"}};

/* mqueue stays empty: it is also what covers the hidden directories of /proc. */
static const char *const dev_directories[] = {"pts", "shm", "mqueue"};

static int fill_dev(int fd, uid_t owner)
{
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		if (mknodat(fd, nodes[i].name, S_IFCHR | 0666,
			    makedev(nodes[i].major, nodes[i].minor)) < 0 ||
			fchownat(fd, nodes[i].name, owner, owner, 0) < 0)
			return -errno;
	for (size_t i = 0; i < ARRAY_LEN(dev_links); i++)
		if (symlinkat(dev_links[i].target, fd, dev_links[i].name) < 0)
			return -errno;
	for (size_t i = 0; i < ARRAY_LEN(dev_directories); i++)
		if (mkdirat(fd, dev_directories[i], 0755) < 0)
			return -errno;
	return 0;
}

/* Each boot has an id of its own, where programs look for it: this covers the host's. */
static int write_boot_id(int dev_fd, const uint8_t id[UUID_BYTES])
{
	char text[UUID_SIZE];
	autoclose int fd = openat(dev_fd, "boot_id", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	uuid_format(id, text);
	text[UUID_SIZE - 1] = '\n';
	return fd < 0 ? -errno : fd_write_all(fd, text, UUID_SIZE);
}

/* Its own, not a clone of a shared one: inotify and locks on a shared /dev/null would reach
 * neighbours. */
static int step_dev(struct inside *in)
{
	char owner[16];
	snprintf(owner, sizeof owner, "%u", in->b->uid_base);
	autoclose int fd = new_mount("tmpfs",
		(struct option[]){{"size", "65536"}, {"nr_inodes", "32"}, {"mode", "0755"},
			{"uid", owner}, {"gid", owner}, {NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return fd;
	umask(0);
	int r = fill_dev(fd, in->b->uid_base);
	if (r == 0)
		r = write_boot_id(fd, in->b->boot_id);
	if (r == 0)
		r = set_attributes(fd, MOUNT_ATTR_RDONLY, -1);
	if (r == 0)
		r = move_inside(fd, in->root_fd, "dev");
	if (r == 0)
		r = mount_pts(in);
	return r < 0 ? r : mount_shm(in);
}

static int step_proc(struct inside *in)
{
	autoclose int fd = new_mount("proc", (struct option[]){{NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return fd;
	int r = move_inside(fd, in->root_fd, "proc");
	if (r < 0)
		return r;
	in->proc_fd = open_inside(in->root_fd, "proc");
	return in->proc_fd < 0 ? in->proc_fd : 0;
}

static const char *const read_only_paths[] = {
	"sys", "sysrq-trigger", "irq", "bus", "fs", "pressure"};
/* What the host's root alone may read needs no cover: nobody inside is that. */
static const char *const hidden_files[] = {"kcore", "keys", "key-users", "timer_list",
	"sched_debug", "kallsyms", "latency_stats", "interrupts"};
static const char *const hidden_directories[] = {"acpi", "scsi", "asound"};

/* Puts a read-only clone of something over a part of /proc, if there is such a part. */
static int cover(struct inside *in, const char *name, int source_dir, const char *source)
{
	autoclose int target = open_inside(in->proc_fd, name);
	if (target == -ENOENT)
		return 0;
	autoclose int fd = target < 0 ? target : open_tree_at(source_dir, source, 0);
	if (fd < 0)
		return fd;
	int r = set_attributes(fd,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, -1);
	if (r < 0)
		return r;
	return syscall(SYS_move_mount, fd, "", target, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int step_mask(struct inside *in)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(read_only_paths); i++)
		r = cover(in, read_only_paths[i], in->proc_fd, read_only_paths[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(hidden_files); i++)
		r = cover(in, hidden_files[i], in->root_fd, "dev/null");
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(hidden_directories); i++)
		r = cover(in, hidden_directories[i], in->root_fd, "dev/mqueue");
	return r < 0 ? r : cover(in, "sys/kernel/random/boot_id", in->root_fd, "dev/boot_id");
}

/* Whoever shares the host's network finds names as the host does; the disk does not change. */
static int step_resolver(struct inside *in)
{
	static const char host[] = "/etc/resolv.conf";
	if (!in->b->host_network || access(host, R_OK) < 0)
		return 0;
	autoclose int fd = open_tree_at(AT_FDCWD, host, 0);
	if (fd < 0)
		return fd;
	int r = set_attributes(fd,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, -1);
	return r < 0 ? r : move_inside(fd, in->root_fd, "etc/resolv.conf");
}

/*
 * A directory inside, made if it is missing, as the sandbox's root. No link is followed: who left
 * one in the way does not get this mount, and the boot says so.
 */
static int open_mount_point(struct inside *in, const char *path)
{
	char part[WARDEN_MOUNT_SIZE];
	int at = openat(in->root_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (at >= 0 && *path) {
		size_t len = strcspn(++path, "/");
		snprintf(part, sizeof part, "%.*s", (int)len, path);
		if (mkdirat(at, part, 0755) < 0 && errno != EEXIST) {
			close(at);
			return -errno;
		}
		int next = openat(at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(at);
		at = next;
		path += len;
	}
	return at < 0 ? -errno : at;
}

static int mount_volume(struct inside *in, const struct warden_volume *v)
{
	char source[ID_SIZE + 8];
	snprintf(source, sizeof source, "%s/data", v->id);
	autoclose int volumes = open("../disks/volumes", O_PATH | O_DIRECTORY | O_CLOEXEC);
	autoclose int data = volumes < 0 ? -errno : open_inside(volumes, source);
	autoclose int tree = data < 0 ? data : open_tree_at(data, "", AT_EMPTY_PATH);
	if (tree < 0)
		return tree;
	int r = set_attributes(tree,
		MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID | (v->read_only ? MOUNT_ATTR_RDONLY : 0),
		in->b->userns_fd);
	if (r == 0)
		r = act_as(in->b->uid_base);
	autoclose int target = r < 0 ? r : open_mount_point(in, v->path);
	r = act_as(0);
	if (target < 0 || r < 0)
		return target < 0 ? target : r;
	return syscall(SYS_move_mount, tree, "", target, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int step_volumes(struct inside *in)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < WARDEN_VOLUMES_MAX; i++)
		if (in->b->volumes && in->b->volumes[i].id[0])
			r = mount_volume(in, &in->b->volumes[i]);
	return r;
}

static int step_pivot(struct inside *in)
{
	if (fchdir(in->root_fd) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
		syscall(SYS_umount2, ".", MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	return 0;
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
	if (setgroups(0, NULL) < 0 || setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int step_seccomp(struct inside *in)
{
	/* Without no_new_privs, because sudo must work inside; our capability allows it. */
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, in->w->filter, 0, 0) < 0 ? -errno : 0;
}

/* Puts our four descriptors in their places, whatever numbers they had, and closes the rest. */
static int arrange_descriptors(struct inside *in, int *init_fd, int *report_fd)
{
	int wanted[] = {in->b->listen_fd, in->b->cgroup_fd, in->w->init_fd, in->b->report_fd};
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		wanted[i] = fcntl(wanted[i], F_DUPFD_CLOEXEC, 64);
		if (wanted[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		if (dup3(wanted[i], INIT_LISTEN_FD + (int)i, i < 2 ? 0 : O_CLOEXEC) < 0)
			return -errno;
	*init_fd = INIT_LISTEN_FD + 2;
	*report_fd = INIT_LISTEN_FD + 3;
	int null_fd = open("/dev/null", O_RDWR);
	for (int i = 0; i < 3; i++)
		if (dup2(null_fd, i) < 0)
			return -errno;
	return syscall(SYS_close_range, INIT_LISTEN_FD + 4, ~0u, 0) < 0 ? -errno : 0;
}

static int step_exec(struct inside *in)
{
	const char *argv[] = {"bunker-init", NULL}, *envp[] = {NULL};
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
