/*
 * The operations on disks. Each leaves either the old state or the new one, and can be repeated:
 * what it makes appears under its name in one step, what it removes disappears in one.
 *
 * With simple quotas a sandbox is a quota group of level 1, and every disk it ever had is in it:
 * what it wrote counts for as long as anything of its own, a checkpoint too, still holds it. What
 * it stands on, a snapshot for example, was written by somebody else and is not counted.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/id_list.h"
#include "base/log.h"

#define VOLUME_OWNER 1000 /* the sandboxes' user */

/* On disk uids are those of the sandbox (the mount is idmapped), so its root is 0 here too. */
static const struct {
	const char *name;
	mode_t mode;
} box_dirs[] = {{"root", 0755}, {"root.work", 0700}, {"usr", 0755}, {"usr.work", 0700}};

static bool is_btrfs(const struct keeper *k)
{
	return k->disk_pool != DISK_POOL_DIRECTORY;
}

static int open_named(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

int disk_open(struct keeper *k, const struct disk_name *disk)
{
	return open_named(k->dirs[disk->kind], disk->id);
}

static bool keeper_disk_exists(int dir_fd, const char *name)
{
	struct stat st;
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- quotas ---- */

static int new_group(struct keeper *k, uint64_t *ret)
{
	uint64_t number;
	if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
		return -EIO;
	*ret = (UINT64_C(1) << 48) | (number >> 16);
	return btrfs_make_group(k->disks_fd, *ret);
}

/* The group that a disk's limit is on. */
static int limited_group(struct keeper *k, int fd, uint64_t *ret)
{
	return k->quota == QUOTA_SIMPLE ? btrfs_group_of(fd, ret) : btrfs_own_group(fd, ret);
}

static int keeper_disk_set_limit(struct keeper *k, int fd, int64_t limit)
{
	uint64_t group;
	if (k->quota == QUOTA_NONE || limit == 0)
		return 0;
	int r = limited_group(k, fd, &group);
	return r < 0 ? r : btrfs_set_limit(k->disks_fd, group, limit);
}

int disk_limit(struct keeper *k, const struct disk_name *disk, int64_t limit)
{
	autoclose int fd = disk_open(k, disk);
	return fd < 0 ? fd : keeper_disk_set_limit(k, fd, limit);
}

int disk_usage(
	struct keeper *k, const struct disk_name *disk, bool now, int64_t *used, int64_t *limit)
{
	uint64_t group;
	autoclose int fd = disk_open(k, disk);
	if (fd < 0)
		return fd;
	if (k->quota == QUOTA_NONE)
		return -EOPNOTSUPP;
	int r = limited_group(k, fd, &group);
	if (r == 0 && now)
		r = btrfs_sync(fd);
	return r < 0 ? r : btrfs_read_group(k->disks_fd, group, used, limit);
}

/* Full quotas also count inherited data, so its size is added to the limit. */
static int set_limit_above(struct keeper *k, int fd, int from_fd, int64_t limit)
{
	uint64_t group;
	int64_t used = 0, none;
	if (k->quota == QUOTA_FULL && from_fd >= 0 && btrfs_own_group(from_fd, &group) == 0)
		btrfs_read_group(k->disks_fd, group, &used, &none);
	return keeper_disk_set_limit(k, fd, limit ? limit + used : 0);
}

/* ---- removing ---- */

/* A full socket means that the sweeper has been notified already. */
void sweeper_tell(struct keeper *k)
{
	send(k->sweeper_pair[0], (char[]){SWEEPER_TRASH}, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Out of sight at once; the kernel or the sweeper frees the space. A read-only subvolume cannot be
 * moved, but goes by one call. */
int disk_discard_at(struct keeper *k, int dir_fd, const char *name)
{
	autoclose int fd = open_named(dir_fd, name);
	if (fd >= 0 && btrfs_is_subvolume(fd) && btrfs_delete(dir_fd, name) == 0) {
		sweeper_tell(k);
		return 0;
	}
	static uint64_t counter;
	char fresh[64];
	snprintf(fresh, sizeof fresh, "%s.%d.%llu", name, getpid(), (unsigned long long)++counter);
	if (renameat(dir_fd, name, k->trash_fd, fresh) < 0) {
		int error = errno;
		/* A full btrfs has no room for a rename, but for taking a subvolume apart. */
		bool gone = error == ENOENT || (is_btrfs(k) && btrfs_delete(dir_fd, name) == 0);
		return gone ? 0 : -error;
	}
	sweeper_tell(k);
	return 0;
}

/* ---- making ---- */

static int make_volume_dir(int fd)
{
	if (mkdirat(fd, "data", 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	return fchownat(fd, "data", VOLUME_OWNER, VOLUME_OWNER, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											 : 0;
}

/* Makes the directories of an empty disk of this kind. */
static int make_dirs(int fd, enum disk_kind kind)
{
	if (kind == DISK_VOLUME)
		return make_volume_dir(fd);
	for (size_t i = 0; i < ARRAY_LEN(box_dirs); i++)
		if (mkdirat(fd, box_dirs[i].name, box_dirs[i].mode) < 0 && errno != EEXIST)
			return -errno;
	return 0;
}

static int copy_plain(struct keeper *k, enum disk_kind kind, const char *name, int from_fd)
{
	int dir_fd = k->dirs[kind];
	char aside[ID_SIZE + 8];
	snprintf(aside, sizeof aside, "%s.new", name);
	int r = disk_discard_at(k, dir_fd, aside); /* left by an interrupted attempt */
	if (r < 0)
		return r;
	if (mkdirat(dir_fd, aside, 0755) < 0)
		return -errno;
	autoclose int fd = open_named(dir_fd, aside);
	r = fd < 0 ? fd : from_fd >= 0 ? keeper_copy_tree(from_fd, fd) : make_dirs(fd, kind);
	if (r == 0 && renameat(dir_fd, aside, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		disk_discard_at(k, dir_fd, aside);
	return r;
}

/* Makes the disk `name`: a copy of from_fd, or an empty one if from_fd is -1. */
static int make_at(
	struct keeper *k, enum disk_kind kind, const char *name, int from_fd, uint64_t group)
{
	int dir_fd = k->dirs[kind];
	if (!is_btrfs(k))
		return copy_plain(k, kind, name, from_fd);
	if (from_fd >= 0)
		return btrfs_snapshot(from_fd, dir_fd, name, group, false);
	int r = btrfs_create(dir_fd, name, group);
	autoclose int fd = r < 0 ? r : open_named(dir_fd, name);
	return fd < 0 ? fd : make_dirs(fd, kind);
}

static int open_source(struct keeper *k, const struct disk_name *from)
{
	return from->kind == DISK_NONE ? -1 : disk_open(k, from);
}

static int make_new(struct keeper *k, const struct disk_name *disk, const struct disk_name *from,
	int from_fd, int64_t *frozen_us)
{
	uint64_t group = 0;
	struct held held;
	int r = k->quota == QUOTA_SIMPLE ? new_group(k, &group) : 0;
	FAULT_POINT();
	if (r == 0)
		r = hold_sandbox(k, from, from_fd, &held);
	if (r < 0)
		return r;
	r = make_at(k, disk->kind, disk->id, from_fd, group);
	FAULT_POINT();
	let_go(k, &held, frozen_us);
	return r;
}

int disk_make(struct keeper *k, const struct disk_name *disk, const struct disk_name *from,
	int64_t limit, int64_t *frozen_us)
{
	int r = 0;
	autoclose int from_fd = open_source(k, from);
	if (from_fd < 0 && from->kind != DISK_NONE)
		return from_fd;
	if (!keeper_disk_exists(k->dirs[disk->kind], disk->id))
		r = make_new(k, disk, from, from_fd, frozen_us);
	autoclose int fd = r < 0 ? r : disk_open(k, disk);
	if (fd < 0)
		return fd;
	if (from->kind == DISK_NONE)
		r = make_dirs(
			fd, disk->kind); /* again: an earlier attempt may have been cut short */
	return r < 0 ? r : set_limit_above(k, fd, from_fd, limit);
}

/* ---- keeping ---- */

static int keep_frozen(struct keeper *k, const struct disk_name *disk, int from_fd)
{
	if (is_btrfs(k))
		return btrfs_snapshot(from_fd, k->dirs[disk->kind], disk->id, 0, true);
	return copy_plain(k, disk->kind, disk->id, from_fd);
}

int disk_keep(struct keeper *k, const struct disk_name *disk, const struct disk_name *from,
	int64_t *frozen_us)
{
	struct held held;
	autoclose int from_fd = disk_open(k, from);
	if (from_fd < 0)
		return from_fd;
	if (keeper_disk_exists(k->dirs[disk->kind], disk->id))
		return 0;
	int r = hold_sandbox(k, from, from_fd, &held);
	if (r < 0)
		return r;
	r = keep_frozen(k, disk, from_fd);
	FAULT_POINT();
	let_go(k, &held, frozen_us);
	return r;
}

/* ---- deleting ---- */

int disk_delete(struct keeper *k, const struct disk_name *disk)
{
	return disk_discard_at(k, k->dirs[disk->kind], disk->id);
}

/* ---- restoring ---- */

static int swap_in(struct keeper *k, int dir_fd, const char *fresh, const char *id)
{
	if (!keeper_disk_exists(dir_fd, id))
		return renameat(dir_fd, fresh, dir_fd, id) < 0 ? -errno : 0;
	FAULT_POINT();
	if (renameat2(dir_fd, fresh, dir_fd, id, RENAME_EXCHANGE) < 0)
		return -errno;
	FAULT_POINT();
	return disk_discard_at(k, dir_fd, fresh);
}

static int group_for_restore(struct keeper *k, const struct disk_name *disk, uint64_t *ret)
{
	autoclose int fd = disk_open(k, disk);
	*ret = 0;
	if (k->quota != QUOTA_SIMPLE)
		return 0;
	return fd < 0 || btrfs_group_of(fd, ret) < 0 ? new_group(k, ret) : 0;
}

int disk_restore(struct keeper *k, const struct disk_name *disk, const struct disk_name *from)
{
	int dir_fd = k->dirs[disk->kind];
	char fresh[ID_SIZE + 8];
	uint64_t group;
	autoclose int from_fd = open_source(k, from);
	if (from_fd < 0 && from->kind != DISK_NONE)
		return from_fd;
	snprintf(fresh, sizeof fresh, "%s.new", disk->id);
	int r = disk_discard_at(k, dir_fd, fresh);
	FAULT_POINT();
	if (r == 0)
		r = group_for_restore(k, disk, &group);
	if (r == 0)
		r = make_at(k, disk->kind, fresh, from_fd, group);
	if (r == 0)
		r = swap_in(k, dir_fd, fresh, disk->id);
	if (r == 0 && is_btrfs(k))
		r = btrfs_sync(k->disks_fd);
	return r;
}

void disk_undo(struct keeper *k, const struct keeper_request *q)
{
	char fresh[ID_SIZE + 8];
	if (q->disk.kind == DISK_NONE || !q->disk.id[0])
		return;
	snprintf(fresh, sizeof fresh, "%s.new", q->disk.id);
	disk_discard_at(k, k->dirs[q->disk.kind], fresh);
	if (q->op == KEEPER_MAKE || q->op == KEEPER_KEEP)
		disk_delete(k, &q->disk);
}

void disk_clean_up(struct keeper *k)
{
	for (int kind = DISK_NONE + 1; kind < DISK_KIND_END; kind++) {
		int fd = open_named(k->dirs[kind], ".");
		DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
		struct dirent *entry;
		while (dir && (entry = readdir(dir)) != NULL)
			if (strchr(entry->d_name, '.') && entry->d_name[0] != '.')
				disk_discard_at(k, k->dirs[kind], entry->d_name);
		if (dir)
			closedir(dir);
	}
}

void disk_next(struct keeper *k, enum disk_kind kind, const char *after, char ret[ID_SIZE])
{
	static struct id_list lists[DISK_KIND_END];
	struct id_list *list = &lists[kind];
	if (!after[0] || !list->ids) {
		id_list_free(list);
		id_list_add(list, k->dirs[kind]);
		id_list_sort(list);
	}
	const char *next = id_list_after(list, after);
	snprintf(ret, ID_SIZE, "%s", next ? next : "");
	if (!next)
		id_list_free(list);
}
