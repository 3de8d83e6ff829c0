/* /dev and /proc of a sandbox: new ones, and what they have of the host's is covered. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "warden/inside.h"

#define SHM_MAX (64 << 20)

static int mount_pts(struct inside *in)
{
	char gid[16];
	snprintf(gid, sizeof gid, "%u", in->b->uid_base + 5);
	autoclose int fd = mount_new("devpts",
		(struct mount_option[]){{"gid", gid}, {"mode", "0620"}, {"ptmxmode", "0666"},
			{"max", "256"}, {NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	return fd < 0 ? fd : mount_move_below(fd, in->root_fd, "dev/pts");
}

static int mount_shm(struct inside *in)
{
	char owner[16], size[24];
	int64_t half = in->b->limits.memory / 2;
	snprintf(owner, sizeof owner, "%u", in->b->uid_base);
	/* Below the memory limit: full, it must answer ENOSPC and not cost processes their lives.
	 */
	snprintf(size, sizeof size, "%lld", (long long)(half < SHM_MAX ? half : SHM_MAX));
	autoclose int fd = mount_new("tmpfs",
		(struct mount_option[]){{"size", size}, {"nr_inodes", "65536"}, {"mode", "1777"},
			{"uid", owner}, {"gid", owner}, {NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return fd < 0 ? fd : mount_move_below(fd, in->root_fd, "dev/shm");
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

static int kernel_files_write_file(int dev_fd, const char *name, const void *data, size_t len)
{
	autoclose int fd = openat(dev_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	return fd < 0 ? -errno : fd_write_all(fd, data, len);
}

/* Each boot has an id of its own, where programs look for it: this covers the host's. */
static int write_boot_id(int dev_fd, const uint8_t id[UUID_BYTES])
{
	char text[UUID_SIZE];
	uuid_format(id, text);
	text[UUID_SIZE - 1] = '\n';
	return kernel_files_write_file(dev_fd, "boot_id", text, UUID_SIZE);
}

/* Its own, not a clone of a shared one: inotify and locks on a shared /dev/null would reach
 * neighbours. */
int step_dev(struct inside *in)
{
	char owner[16];
	snprintf(owner, sizeof owner, "%u", in->b->uid_base);
	autoclose int fd = mount_new("tmpfs",
		(struct mount_option[]){{"size", "65536"}, {"nr_inodes", "32"}, {"mode", "0755"},
			{"uid", owner}, {"gid", owner}, {NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return fd;
	umask(0);
	int r = fill_dev(fd, in->b->uid_base);
	if (r == 0)
		r = write_boot_id(fd, in->b->boot_id);
	/* Of the kernel's command line, which some hosts have secrets in, scripts get an empty one.
	 */
	if (r == 0)
		r = kernel_files_write_file(fd, "cmdline", "\n", 1);
	if (r == 0)
		r = mount_set_attributes(fd, MOUNT_ATTR_RDONLY, -1);
	if (r == 0)
		r = mount_move_below(fd, in->root_fd, "dev");
	if (r == 0)
		r = mount_pts(in);
	return r < 0 ? r : mount_shm(in);
}

/*
 * Settings are written through the sandbox's own /proc: each namespace has entries of the same name
 * in the host's, and a lookup there walks through those of every sandbox.
 */
int step_proc(struct inside *in)
{
	autoclose int fd = mount_new("proc", (struct mount_option[]){{NULL, NULL}},
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (fd < 0)
		return fd;
	int r = mount_move_below(fd, in->root_fd, "proc");
	if (r < 0)
		return r;
	in->proc_fd = mount_open_point(in->root_fd, "proc");
	if (in->proc_fd < 0)
		return in->proc_fd;
	in->sys_fd = mount_open_point(in->proc_fd, "sys");
	if (in->sys_fd < 0)
		return in->sys_fd;
	/* The network namespace is not the sandbox's own, so its root needs this for port 80. */
	return fd_write_file_at(in->sys_fd, "net/ipv4/ip_unprivileged_port_start", "0");
}

static const char *const read_only_paths[] = {"sys", "sysrq-trigger", "pressure"};
/* Files that only the host's root may read need no cover: no process inside has that uid. */
static const char *const hidden_files[] = {"kcore", "keys", "key-users", "timer_list",
	"sched_debug", "kallsyms", "latency_stats", "interrupts", "config.gz"};
static const char *const hidden_directories[] = {"acpi", "scsi", "asound", "bus", "fs", "irq"};

/* Puts a read-only clone of something over a part of /proc, if there is such a part. */
static int kernel_files_cover(
	struct inside *in, const char *name, int source_dir, const char *source)
{
	autoclose int target = mount_open_point(in->proc_fd, name);
	if (target == -ENOENT)
		return 0;
	autoclose int fd = target < 0 ? target : mount_clone(source_dir, source, 0);
	if (fd < 0)
		return fd;
	int r = mount_set_attributes(fd,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, -1);
	if (r < 0)
		return r;
	return mount_move_onto(fd, target);
}

int step_mask(struct inside *in)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(read_only_paths); i++)
		r = kernel_files_cover(in, read_only_paths[i], in->proc_fd, read_only_paths[i]);
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(hidden_files); i++)
		r = kernel_files_cover(in, hidden_files[i], in->root_fd, "dev/null");
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(hidden_directories); i++)
		r = kernel_files_cover(in, hidden_directories[i], in->root_fd, "dev/mqueue");
	if (r == 0)
		r = kernel_files_cover(in, "cmdline", in->root_fd, "dev/cmdline");
	return r < 0 ? r
		     : kernel_files_cover(
			       in, "sys/kernel/random/boot_id", in->root_fd, "dev/boot_id");
}
