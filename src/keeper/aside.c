/*
 * Whose the disks are, and what becomes of those that nobody knows.
 *
 * data/disks/owner holds the identity of the database that names the disks. The front compares it
 * with its own before anything is removed: an empty or another database would find every disk
 * unknown.
 *
 * A disk that the right database does not know was never acknowledged or is being deleted, or the
 * database is older than it. It is set aside as data/disks/aside/KIND-ID-SECONDS, for a day.
 */
#include "keeper/keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/log.h"

#define OWNER         "owner"
#define ASIDE_SECONDS (24 * 3600)
#define ASIDE_MAX     1000 /* disks; any further one is removed at once */

/* ---- the owner ---- */

void keeper_read_owner(const struct keeper *k, char ret[ID_SIZE])
{
	autobuf text = {0};
	ret[0] = '\0';
	if (fd_read_file_at(k->disks_fd, OWNER, &text, ID_SIZE) < 0 || text.len < ID_LEN)
		return;
	memcpy(ret, text.data, ID_LEN);
	ret[ID_LEN] = '\0';
	if (!id_is_valid(ret))
		ret[0] = '\0';
}

int owner_write(struct keeper *k, const char *id)
{
	FAULT_POINT();
	return fd_keep_file_at(k->disks_fd, OWNER, id);
}

/* ---- setting aside ---- */

static DIR *aside_open(const struct keeper *k)
{
	int fd = openat(k->aside_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static unsigned aside_count(const struct keeper *k)
{
	unsigned count = 0;
	DIR *dir = aside_open(k);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL)
		count += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return count;
}

/*
 * A read-only subvolume cannot be moved: it is copied, which takes no room, and deleted. A keeper
 * that died between the two has left the copy, which is whole: only the deletion is left to do.
 */
static int aside_move(struct keeper *k, const struct disk_name *disk, const char *name)
{
	int dir_fd = k->dirs[disk->kind];
	uint64_t group = 0;
	if (renameat(dir_fd, disk->id, k->aside_fd, name) == 0)
		return 0;
	int error = errno;
	autoclose int fd = disk_open(k, disk);
	if (fd < 0 || !btrfs_is_subvolume(fd))
		return -error;
	if (k->quota == QUOTA_SIMPLE)
		btrfs_group_of(fd, &group);
	int r = btrfs_snapshot(fd, k->aside_fd, name, group, true);
	if (r < 0 && r != -EEXIST)
		return r;
	FAULT_POINT();
	return btrfs_delete(dir_fd, disk->id);
}

int disk_set_aside(struct keeper *k, const struct disk_name *disk)
{
	char name[ID_SIZE + 48];
	if (aside_count(k) >= ASIDE_MAX) {
		log_warn("too many disks are set aside; one is removed", "disk", disk->id);
		return disk_delete(k, disk);
	}
	snprintf(name, sizeof name, "%s-%s-%lld", disk_kind_name((enum disk_kind)disk->kind),
		disk->id, (long long)(clock_wall_ms() / 1000));
	return aside_move(k, disk, name);
}

/* ---- after a day ---- */

void aside_expire(struct keeper *k)
{
	DIR *dir = aside_open(k);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL) {
		const char *since = strrchr(entry->d_name, '-');
		if (since && strtoll(since + 1, NULL, 10) + ASIDE_SECONDS < clock_wall_ms() / 1000)
			disk_discard_at(k, k->aside_fd, entry->d_name);
	}
	if (dir)
		closedir(dir);
}
