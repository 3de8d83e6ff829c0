/*
 * The ioctls of btrfs, and nothing else: subvolumes, snapshots, quota groups.
 *
 * A quota group is a number: its level in the upper 16 bits, 0 for the group that each subvolume
 * has of its own. Debian's headers are older than simple quotas, so their few constants are here.
 */
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/fd.h"

#define QUOTA_CTL_ENABLE_SIMPLE 4
#define QGROUP_STATUS_SIMPLE    (1ULL << 3)
#define SUBVOLUME_ROOT_INODE    256
#define GROUPS_AT_ONCE          256

#define group_level(group) ((group) >> 48)

union inherit {
	struct btrfs_qgroup_inherit header;
	uint64_t space[sizeof(struct btrfs_qgroup_inherit) / sizeof(uint64_t) + 1];
};

bool btrfs_is(int fd)
{
	struct statfs s;
	return fstatfs(fd, &s) == 0 && s.f_type == BTRFS_SUPER_MAGIC;
}

bool btrfs_is_subvolume(int fd)
{
	struct stat st;
	return fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && st.st_ino == SUBVOLUME_ROOT_INODE &&
	       btrfs_is(fd);
}

static int btrfs_issue(int fd, unsigned long request, void *args)
{
	return ioctl(fd, request, args) < 0 ? -errno : 0;
}

/* Puts the new subvolume into a higher-level quota group; group 0: into none. */
static void put_into_group(
	struct btrfs_ioctl_vol_args_v2 *args, union inherit *inherit, uint64_t group)
{
	if (!group)
		return;
	*inherit = (union inherit){.header = {.num_qgroups = 1}};
	inherit->space[sizeof(struct btrfs_qgroup_inherit) / sizeof(uint64_t)] = group;
	args->flags |= BTRFS_SUBVOL_QGROUP_INHERIT;
	args->size = sizeof *inherit;
	args->qgroup_inherit = &inherit->header;
}

int btrfs_create(int dir_fd, const char *name, uint64_t group)
{
	struct btrfs_ioctl_vol_args_v2 args = {0};
	union inherit inherit;
	snprintf(args.name, sizeof args.name, "%s", name);
	put_into_group(&args, &inherit, group);
	return btrfs_issue(dir_fd, BTRFS_IOC_SUBVOL_CREATE_V2, &args);
}

int btrfs_snapshot(int source_fd, int dir_fd, const char *name, uint64_t group, bool read_only)
{
	struct btrfs_ioctl_vol_args_v2 args = {
		.fd = source_fd, .flags = read_only ? BTRFS_SUBVOL_RDONLY : 0};
	union inherit inherit;
	snprintf(args.name, sizeof args.name, "%s", name);
	put_into_group(&args, &inherit, group);
	return btrfs_issue(dir_fd, BTRFS_IOC_SNAP_CREATE_V2, &args);
}

int btrfs_delete(int dir_fd, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 args = {0};
	snprintf(args.name, sizeof args.name, "%s", name);
	return btrfs_issue(dir_fd, BTRFS_IOC_SNAP_DESTROY_V2, &args);
}

int btrfs_own_group(int fd, uint64_t *ret)
{
	struct btrfs_ioctl_ino_lookup_args args = {.objectid = SUBVOLUME_ROOT_INODE};
	int r = btrfs_issue(fd, BTRFS_IOC_INO_LOOKUP, &args);
	*ret = args.treeid;
	return r;
}

int64_t btrfs_read_dirty(int fd)
{
	struct btrfs_ioctl_fs_info_args info = {0};
	char path[128], *at = path;
	if (btrfs_issue(fd, BTRFS_IOC_FS_INFO, &info) < 0)
		return 0;
	at += snprintf(path, sizeof path, "/sys/fs/btrfs/");
	for (size_t i = 0; i < sizeof info.fsid; i++)
		at += snprintf(at, (size_t)(path + sizeof path - at), "%s%02x",
			i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", info.fsid[i]);
	snprintf(at, (size_t)(path + sizeof path - at), "/allocation/data/bytes_may_use");
	return fd_read_number_at(AT_FDCWD, path, "");
}

int btrfs_sync(int fd)
{
	uint64_t transaction;
	int r = btrfs_issue(fd, BTRFS_IOC_START_SYNC, &transaction);
	return r < 0 ? r : btrfs_issue(fd, BTRFS_IOC_WAIT_SYNC, &transaction);
}

/* ---- quotas ---- */

int btrfs_enable_simple_quota(int fd)
{
	struct btrfs_ioctl_quota_ctl_args args = {.cmd = QUOTA_CTL_ENABLE_SIMPLE};
	int r = btrfs_issue(fd, BTRFS_IOC_QUOTA_CTL, &args);
	return r == -EEXIST ? 0 : r;
}

int btrfs_make_group(int fd, uint64_t group)
{
	struct btrfs_ioctl_qgroup_create_args args = {.create = 1, .qgroupid = group};
	return btrfs_issue(fd, BTRFS_IOC_QGROUP_CREATE, &args);
}

static int drop_group(int fd, uint64_t group)
{
	struct btrfs_ioctl_qgroup_create_args args = {.create = 0, .qgroupid = group};
	return btrfs_issue(fd, BTRFS_IOC_QGROUP_CREATE, &args);
}

int btrfs_set_limit(int fd, uint64_t group, int64_t bytes)
{
	struct btrfs_ioctl_qgroup_limit_args args = {.qgroupid = group,
		.lim = {.flags = BTRFS_QGROUP_LIMIT_MAX_RFER, .max_rfer = (uint64_t)bytes}};
	return btrfs_issue(fd, BTRFS_IOC_QGROUP_LIMIT, &args);
}

/* ---- reading the quota tree ---- */

/* Items of one type with offsets from *offset on, as many as fit; the number of items. */
static int search_tree(int fd, struct btrfs_ioctl_search_args *args, uint64_t tree, uint64_t object,
	uint32_t type, uint64_t offset)
{
	*args = (struct btrfs_ioctl_search_args){.key = {
							 .tree_id = tree,
							 .min_objectid = object,
							 .max_objectid = object,
							 .min_type = type,
							 .max_type = type,
							 .min_offset = offset,
							 .max_offset = UINT64_MAX,
							 .max_transid = UINT64_MAX,
							 .nr_items = GROUPS_AT_ONCE,
						 }};
	int r = btrfs_issue(fd, BTRFS_IOC_TREE_SEARCH, args);
	return r < 0 ? r : (int)args->key.nr_items;
}

static int search_quota(int fd, struct btrfs_ioctl_search_args *args, uint64_t object,
	uint32_t type, uint64_t offset)
{
	return search_tree(fd, args, BTRFS_QUOTA_TREE_OBJECTID, object, type, offset);
}

/* The item at *at in the answer, which moves behind it. */
static const void *next_item(const struct btrfs_ioctl_search_args *args, size_t *at,
	struct btrfs_ioctl_search_header *header)
{
	memcpy(header, args->buf + *at, sizeof *header);
	const void *item = args->buf + *at + sizeof *header;
	*at += sizeof *header + header->len;
	return item;
}

static int read_item(
	int fd, uint32_t type, uint64_t offset, void *out, size_t size, uint64_t *found_offset)
{
	struct btrfs_ioctl_search_args args;
	struct btrfs_ioctl_search_header header;
	size_t at = 0;
	int n = search_quota(fd, &args, 0, type, offset);
	if (n <= 0)
		return n < 0 ? n : -ENOENT;
	const void *item = next_item(&args, &at, &header);
	if (header.len < size)
		return -EPROTO;
	memcpy(out, item, size);
	*found_offset = header.offset;
	return 0;
}

int btrfs_quota_mode(int fd, enum quota_mode *ret)
{
	struct btrfs_qgroup_status_item status;
	uint64_t offset;
	*ret = QUOTA_NONE;
	int r = read_item(fd, BTRFS_QGROUP_STATUS_KEY, 0, &status, sizeof status, &offset);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	if (status.flags & QGROUP_STATUS_SIMPLE)
		*ret = QUOTA_SIMPLE;
	else if (status.flags & BTRFS_QGROUP_STATUS_FLAG_ON)
		*ret = QUOTA_FULL;
	return 0;
}

int btrfs_read_group(int fd, uint64_t group, int64_t *used, int64_t *limit)
{
	struct btrfs_qgroup_info_item info;
	struct btrfs_qgroup_limit_item max;
	uint64_t found;
	int r = read_item(fd, BTRFS_QGROUP_INFO_KEY, group, &info, sizeof info, &found);
	if (r < 0 || found != group)
		return r < 0 ? r : -ENOENT;
	*used = (int64_t)info.rfer;
	*limit = 0;
	if (read_item(fd, BTRFS_QGROUP_LIMIT_KEY, group, &max, sizeof max, &found) == 0 &&
		found == group && (max.flags & BTRFS_QGROUP_LIMIT_MAX_RFER))
		*limit = (int64_t)max.max_rfer;
	return 0;
}

int btrfs_group_of(int fd, uint64_t *ret)
{
	struct btrfs_ioctl_search_args args;
	struct btrfs_ioctl_search_header header;
	uint64_t own;
	size_t at = 0;
	int r = btrfs_own_group(fd, &own);
	if (r < 0)
		return r;
	int n = search_quota(fd, &args, own, BTRFS_QGROUP_RELATION_KEY, own + 1);
	if (n <= 0)
		return n < 0 ? n : -ENOENT;
	next_item(&args, &at, &header);
	*ret = header.offset;
	return 0;
}

/*
 * Returns whether a group is unused: a higher-level one without members, or that of a deleted
 * subvolume whose data is gone.
 */
static bool is_idle(int fd, uint64_t group, const struct btrfs_qgroup_info_item *info)
{
	struct btrfs_ioctl_search_args args;
	if (group_level(group) > 0)
		return search_quota(fd, &args, group, BTRFS_QGROUP_RELATION_KEY, 0) == 0;
	return group >= BTRFS_FIRST_FREE_OBJECTID && info->rfer == 0 &&
	       search_tree(fd, &args, BTRFS_ROOT_TREE_OBJECTID, group, BTRFS_ROOT_ITEM_KEY, 0) == 0;
}

/* Only used on pools that we created: elsewhere an empty group may be intended. */
void btrfs_drop_idle_groups(int fd)
{
	struct btrfs_ioctl_search_args args;
	struct btrfs_ioctl_search_header header;
	uint64_t offset = 0;
	int n;
	while ((n = search_quota(fd, &args, 0, BTRFS_QGROUP_INFO_KEY, offset)) > 0) {
		size_t at = 0;
		for (int i = 0; i < n; i++) {
			struct btrfs_qgroup_info_item info;
			const void *item = next_item(&args, &at, &header);
			offset = header.offset + 1;
			if (header.len < sizeof info)
				continue;
			memcpy(&info, item, sizeof info);
			if (is_idle(fd, header.offset, &info))
				drop_group(fd, header.offset);
		}
	}
}

/* ---- space ---- */

bool btrfs_is_deleting(int fd)
{
	struct btrfs_ioctl_search_args args;
	return search_tree(fd, &args, BTRFS_ROOT_TREE_OBJECTID, BTRFS_ORPHAN_OBJECTID,
		       BTRFS_ORPHAN_ITEM_KEY, 0) > 0;
}

int btrfs_reclaim(int fd)
{
	return btrfs_issue(fd, BTRFS_IOC_SYNC, NULL);
}

int btrfs_grow(int fd)
{
	struct btrfs_ioctl_vol_args args = {.name = "1:max"};
	return btrfs_issue(fd, BTRFS_IOC_RESIZE, &args);
}
