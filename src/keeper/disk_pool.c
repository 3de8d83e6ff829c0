/*
 * Which file system the disks are on. In this order: the data directory's own, if it is btrfs; a
 * btrfs in a file of the data directory, on a loop device; otherwise plain directories. Once there
 * are disks, the choice stays: another pool would hide them.
 *
 * The file is sparse, and freed blocks are given back to the host (discard). A sparse file promises
 * more than there may be: before the host runs so short that the promise could break, the holes are
 * filled, because a write that fails below btrfs takes the whole pool down, not one sandbox.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

#define IMAGE       "disks.btrfs"
#define NEW_IMAGE   "disks.btrfs.new"
#define MIB         (INT64_C(1) << 20)
#define GIB         (INT64_C(1) << 30)
#define IMAGE_MIN   (256 * MIB)
#define MIXED_BELOW GIB         /* in so little room data and metadata take it from each other */
#define HOST_SPARE  (512 * MIB) /* never taken from the host */
#define GROW_STEP   (4 * GIB)
#define GROW_BELOW  (2 * GIB) /* free in the pool */

/* ---- the pool file ---- */

static int64_t host_free(const struct keeper *k)
{
	struct statvfs s;
	return fstatvfs(k->data_fd, &s) < 0 ? 0 : (int64_t)s.f_bavail * (int64_t)s.f_frsize;
}

static int run_mkfs(const char *image, bool small)
{
	static const char *const programs[] = {
		"/usr/sbin/mkfs.btrfs", "/sbin/mkfs.btrfs", "/usr/local/sbin/mkfs.btrfs"};
	pid_t pid = fork();
	int status;
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		const char *const argv[] = {"mkfs.btrfs", "-q", "-K", "-m", "single", "-d",
			"single", "-L", "bunker", image, small ? "--mixed" : NULL, NULL};
		const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL};
		sigset_t none;
		int null_fd = open("/dev/null", O_RDWR);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		for (int i = 0; i < 3; i++)
			dup2(null_fd, i);
		for (size_t i = 0; i < ARRAY_LEN(programs); i++)
			execve(programs[i], (char **)(uintptr_t)argv, (char **)(uintptr_t)envp);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return !WIFEXITED(status) || WEXITSTATUS(status) == 1 ? -EIO
	       : WEXITSTATUS(status) == 127                   ? -ENOENT
							      : 0;
}

/* Built aside, so that a start that is cut short leaves no half pool. */
static int make_image(struct keeper *k, int64_t size, struct error *e)
{
	char path[KEEPER_PATH_MAX + 32];
	int64_t room = host_free(k) - HOST_SPARE;
	size = size < room ? size : room;
	if (size < IMAGE_MIN)
		return error_set(e, ERROR_NO_SPACE,
			"a pool file needs at least 256 MiB besides 512 MiB that stay free");
	unlinkat(k->data_fd, NEW_IMAGE, 0);
	autoclose int fd =
		openat(k->data_fd, NEW_IMAGE, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, size & ~(MIB - 1)) < 0)
		return error_set_errno(e, errno, "cannot make %s/" NEW_IMAGE, k->data);
	snprintf(path, sizeof path, "%s/" NEW_IMAGE, k->data);
	int r = run_mkfs(path, k->disk_pool_max < MIXED_BELOW);
	if (r == 0 && (fsync(fd) < 0 || renameat(k->data_fd, NEW_IMAGE, k->data_fd, IMAGE) < 0))
		r = -errno;
	if (r == 0)
		return 0;
	unlinkat(k->data_fd, NEW_IMAGE, 0);
	if (r == -ENOENT)
		return error_set(e, ERROR_UNAVAILABLE,
			"there is no mkfs.btrfs (apt-get install btrfs-progs)");
	return error_set_errno(e, r, "mkfs.btrfs failed");
}

static int mount_image(struct keeper *k, struct error *e)
{
	char device[32], target[KEEPER_PATH_MAX + 32];
	k->image_fd = openat(k->data_fd, IMAGE, O_RDWR | O_CLOEXEC);
	if (k->image_fd < 0)
		return error_set_errno(e, errno, "cannot open %s/" IMAGE, k->data);
	k->loop_fd = loop_attach(k->image_fd, device);
	if (k->loop_fd < 0)
		return error_set_errno(e, k->loop_fd, "cannot get a loop device for the pool file");
	loop_resize(k->loop_fd); /* if growing was interrupted */
	snprintf(target, sizeof target, "%s/disks", k->data);
	if (mount(device, target, "btrfs", MS_NODEV | MS_NOSUID | MS_NOATIME, "discard=async") < 0)
		return error_set_errno(e, errno, "cannot mount the pool file %s/" IMAGE, k->data);
	k->disk_pool = DISK_POOL_LOOP;
	return 0;
}

static void forget_image(struct keeper *k)
{
	if (k->loop_fd >= 0)
		close(k->loop_fd);
	if (k->image_fd >= 0)
		close(k->image_fd);
	k->loop_fd = k->image_fd = -1;
}

/* ---- quotas ---- */

static void settle_quota(struct keeper *k, int disks_fd)
{
	if (k->disk_pool == DISK_POOL_LOOP) {
		btrfs_quota_mode(disks_fd, &k->quota);
		if (k->quota == QUOTA_NONE)
			btrfs_enable_simple_quota(disks_fd);
	}
	if (btrfs_quota_mode(disks_fd, &k->quota) == 0 && k->quota != QUOTA_NONE)
		return;
	if (k->disk_pool == DISK_POOL_LOOP)
		snprintf(k->disk_pool_reason, sizeof k->disk_pool_reason,
			"this kernel has no simple quotas (6.7 or newer): disk limits are not enforced");
	else
		snprintf(k->disk_pool_reason, sizeof k->disk_pool_reason,
			"quotas are off on this btrfs, so disk limits are not enforced: "
			"btrfs quota enable --simple %s",
			k->data);
}

/* ---- the choice ---- */

static bool has_entries(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;
	bool found = false;
	while (dir && !found && (entry = readdir(dir)) != NULL)
		found = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

bool disk_pool_has_disks(int disks_fd)
{
	static const char *const names[] = {
		"boxes", "checkpoints", "snapshots", "layers", "volumes"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (has_entries(disks_fd, names[i]))
			return true;
	return false;
}

static void use_directory(struct keeper *k, int disks_fd, const char *reason)
{
	k->disk_pool = DISK_POOL_DIRECTORY;
	k->reflink = copy_can_reflink(disks_fd);
	snprintf(k->disk_pool_reason, sizeof k->disk_pool_reason,
		"%.200s: disk limits are not enforced, and %s", reason,
		k->reflink ? "copies take longer the more files there are"
			   : "copies take as long as their data");
}

/* A pool file, or with "auto" what comes next; "loop" takes nothing else. */
static int try_image(struct keeper *k, const struct keeper_config *c, int disks_fd, struct error *e)
{
	struct error why = {0};
	bool exists = faccessat(k->data_fd, IMAGE, F_OK, 0) == 0;
	if ((exists || make_image(k, c->disk_pool_size, &why) == 0) && mount_image(k, &why) == 0)
		return 0;
	forget_image(k);
	if (exists || strcmp(c->disk_pool_choice, "loop") == 0) {
		*e = why;
		return -1;
	}
	unlinkat(k->data_fd, IMAGE, 0);
	log_warn("no btrfs pool for the disks", "reason", why.message);
	use_directory(k, disks_fd, why.message);
	return 0;
}

static int disk_pool_choose(
	struct keeper *k, const struct keeper_config *c, int disks_fd, struct error *e)
{
	if (faccessat(k->data_fd, IMAGE, F_OK, 0) == 0)
		return try_image(k, c, disks_fd, e);
	if (btrfs_is(disks_fd)) {
		k->disk_pool = DISK_POOL_BTRFS;
		return 0;
	}
	if (strcmp(c->disk_pool_choice, "directory") == 0)
		use_directory(k, disks_fd, "directories were asked for (--disk-pool)");
	else if (disk_pool_has_disks(disks_fd))
		use_directory(k, disks_fd, "there are disks in a plain directory already");
	else
		return try_image(k, c, disks_fd, e);
	return 0;
}

int disk_pool_open(struct keeper *k, const struct keeper_config *c, struct error *e)
{
	if (mkdirat(k->data_fd, "disks", 0700) < 0 && errno != EEXIST)
		return error_set_errno(e, errno, "cannot make %s/disks", k->data);
	autoclose int below = openat(k->data_fd, "disks", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (below < 0 || fchmod(below, 0700) < 0)
		return error_set_errno(e, errno, "cannot open %s/disks", k->data);
	k->disk_pool_max = c->disk_pool_max;
	if (disk_pool_choose(k, c, below, e) < 0)
		return -1;
	k->disks_fd = openat(k->data_fd, "disks", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (k->disks_fd < 0 || fchmod(k->disks_fd, 0700) < 0)
		return error_set_errno(e, errno, "cannot open %s/disks", k->data);
	if (k->disk_pool != DISK_POOL_DIRECTORY) {
		k->reflink = true;
		settle_quota(k, k->disks_fd);
	}
	return 0;
}

/* ---- growing ---- */

void disk_pool_measure(const struct keeper *k, int64_t *size, int64_t *free)
{
	struct statvfs s;
	*size = *free = 0;
	if (fstatvfs(k->disks_fd, &s) < 0)
		return;
	*size = (int64_t)s.f_blocks * (int64_t)s.f_frsize;
	*free = (int64_t)s.f_bavail * (int64_t)s.f_frsize;
}

static void disk_pool_grow(struct keeper *k, int64_t size, int64_t room)
{
	int64_t step = size / 4 > GROW_STEP ? size / 4 : GROW_STEP;
	step = step < room ? step : room;
	step = step < k->disk_pool_max - size ? step : k->disk_pool_max - size;
	step &= ~(MIB - 1);
	if (step <= 0)
		return;
	int r = ftruncate(k->image_fd, size + step) < 0 ? -errno : loop_resize(k->loop_fd);
	if (r == 0)
		r = btrfs_grow(k->disks_fd);
	if (r < 0)
		log_error("the disk pool cannot grow", "error", strerror(-r));
	else
		log_info("the disk pool has grown", "bytes", log_num(size + step));
}

void disk_pool_tend(struct keeper *k)
{
	struct stat st;
	int64_t size, free;
	if (k->disk_pool != DISK_POOL_LOOP || fstat(k->image_fd, &st) < 0)
		return;
	disk_pool_measure(k, &size, &free);
	int64_t holes = st.st_size - (int64_t)st.st_blocks * 512;
	int64_t spare = host_free(k) - HOST_SPARE;
	if (free < GROW_BELOW && st.st_size < k->disk_pool_max && spare > holes)
		disk_pool_grow(k, st.st_size, spare - holes);
	else if (holes > MIB && spare < holes && fallocate(k->image_fd, 0, 0, st.st_size) < 0 &&
		 errno != ENOSPC)
		log_error("cannot reserve the disk pool's space", "error", strerror(errno));
}
