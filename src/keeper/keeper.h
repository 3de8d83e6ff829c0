/*
 * The keeper: the process that owns the disks. It makes, copies, swaps, measures and removes them
 * for the front, which it does not trust, and for nobody else; a boot finds its disk ready and
 * never waits for another's copy.
 *
 *     data/disks.btrfs               the pool, if it is a file (disk_pool.c)
 *     data/disks/                    where the pool is mounted, or a directory
 *     data/disks/boxes/ID/{root,usr}            upper layers of / and /usr
 *     data/disks/boxes/ID/{root.work,usr.work}  overlayfs' own
 *     data/disks/boxes/ID.new                   of a restore that is under way
 *     data/disks/{checkpoints,snapshots,layers}/ID  the same four, read-only
 *     data/disks/templates/base-…               the skeleton below every root
 *     data/disks/trash/                         on its way out
 *     data/disks/aside/KIND-ID-SECONDS          known to nobody, kept for a day (aside.c)
 *     data/disks/owner                          the identity of the database that names them
 *     data/disks/frozen/ID                      somebody holds this sandbox still
 *
 * On btrfs each disk is a subvolume: a copy is a snapshot, which takes the time of a commit
 * whatever is in it. Elsewhere it is a directory, and a copy is a copy, of references where the
 * file system has those.
 *
 * What is on a disk was written by somebody hostile: nothing is ever followed there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/id.h"
#include "wire/keeper.h"

#define KEEPER_PATH_MAX 256
/* Descriptors that a process of the disks was given have this number and those behind it. */
#define KEEPER_FIRST_FD 100

enum quota_mode {
	QUOTA_NONE,
	QUOTA_SIMPLE, /* btrfs simple quotas: an extent is charged to its writer */
	QUOTA_FULL    /* btrfs qgroups, if they were enabled before */
};

struct keeper_config {
	const char *data;
	const char *disk_pool_choice; /* "auto", "loop" or "directory" */
	int64_t disk_pool_size;       /* bytes of a new pool file */
	int64_t disk_pool_max;        /* to which it may grow */
	const char *trust;            /* a section of certificates (base/trust_store.h); "": none */
};

struct keeper {
	char data[KEEPER_PATH_MAX];
	int data_fd;
	int disks_fd;
	int dirs[DISK_KIND_END]; /* by kind */
	int templates_fd;
	int trash_fd;
	int aside_fd;
	int frozen_fd; /* names those that we hold still */
	int lock_fd;   /* held by the keeper and those who work for it, but not by readers */
	int cgroup_fd; /* the directory of the sandboxes' v2 cgroups, named by id */
	enum disk_pool_kind disk_pool;
	enum quota_mode quota;
	bool reflink;
	char disk_pool_reason[400]; /* why it is not a better one; "" */
	int image_fd, loop_fd;      /* of a pool file; else -1 */
	int64_t disk_pool_max;
	char template_path[KEEPER_PATH_MAX + 96];

	int sweeper_pair[2]; /* ours, the sweeper's */
	int front_pair[2];   /* the front's, the keeper's */
	pid_t sweeper_pid, pid;
	bool has_died; /* one of them, at some time */
};

/* ---- open.c ---- */

/* In the warden's private mount namespace, before anything is forked. */
int keeper_open(struct keeper *k, const struct keeper_config *config, struct error *e);
/* The processes. cgroup_fd is borrowed. */
int keeper_start(struct keeper *k, int cgroup_fd, struct error *e);
/* Restarts the keeper or the sweeper if `pid` was one of them. */
void keeper_child_ended(struct keeper *k, pid_t pid);
/*
 * Tells the keeper to finish operations under way and waits for it; the sweeper goes on by itself.
 */
void keeper_leave(struct keeper *k);
/* Ends the sweeper, too. After keeper_leave. */
void keeper_stop(struct keeper *k);
/* For a trial: the pool is unmounted. */
void keeper_close(struct keeper *k);
void keeper_remove_tree(const char *path);

/* ---- aside.c ---- */

/* Reads the identity of the disks' database; "": no database has claimed them yet. */
void keeper_read_owner(const struct keeper *k, char ret[ID_SIZE]);
int owner_write(struct keeper *k, const char *id);
/* Moves a disk that no row names out of the way; -ENOENT when it is not there. */
int disk_set_aside(struct keeper *k, const struct disk_name *disk);
/* Removes what has been aside for a day. */
void aside_expire(struct keeper *k);

/* ---- disk_pool.c: which file system the disks are on ---- */

/* Returns whether there is a disk of any kind. */
bool disk_pool_has_disks(int disks_fd);
int disk_pool_open(struct keeper *k, const struct keeper_config *config, struct error *e);
/* Grows a pool file that is nearly full; to be called every now and then. */
void disk_pool_tend(struct keeper *k);
void disk_pool_measure(const struct keeper *k, int64_t *size, int64_t *free);

/* ---- loop.c ---- */

/*
 * Returns the loop device of the image: the existing one, or a new one that goes with its last
 * user.
 */
int loop_attach(int image_fd, char path[32]);
int loop_resize(int loop_fd);

/* ---- btrfs.c ---- */

bool btrfs_is(int fd);
bool btrfs_is_subvolume(int fd);
int btrfs_create(int dir_fd, const char *name, uint64_t group);
int btrfs_snapshot(int source_fd, int dir_fd, const char *name, uint64_t group, bool read_only);
int btrfs_delete(int dir_fd, const char *name);
/* The sub-volume's own quota group. */
int btrfs_own_group(int fd, uint64_t *ret);
/* The group of a higher level that it is in. */
int btrfs_group_of(int fd, uint64_t *ret);
/* Bytes that were written to the file system and have no place on the medium yet; 0: unknown. */
int64_t btrfs_read_dirty(int fd);
/* Everything that was written is on the medium, and the tree that names it. */
int btrfs_sync(int fd);
/* Commits, and wakes the kernel's cleaner, which frees deleted subvolumes. */
int btrfs_reclaim(int fd);
/* Returns whether the cleaner has not finished, e.g. because a file in there is open. */
bool btrfs_is_deleting(int fd);
int btrfs_enable_simple_quota(int fd);
int btrfs_quota_mode(int fd, enum quota_mode *ret);
int btrfs_make_group(int fd, uint64_t group);
int btrfs_set_limit(int fd, uint64_t group, int64_t bytes);
int btrfs_read_group(int fd, uint64_t group, int64_t *used, int64_t *limit);
/* Groups that nothing uses any more. */
void btrfs_drop_idle_groups(int fd);
int btrfs_grow(int fd);

/* ---- disk.c: the operations, on every kind of pool ---- */

int disk_make(struct keeper *k, const struct disk_name *disk, const struct disk_name *from,
	int64_t limit, int64_t *frozen_us);
int disk_limit(struct keeper *k, const struct disk_name *disk, int64_t limit);
int disk_keep(struct keeper *k, const struct disk_name *disk, const struct disk_name *from,
	int64_t *frozen_us);
int disk_restore(struct keeper *k, const struct disk_name *disk, const struct disk_name *from);
int disk_delete(struct keeper *k, const struct disk_name *disk);
/* Discards any directory of the disk pool. */
int disk_discard_at(struct keeper *k, int dir_fd, const char *name);
/* Measures committed data only: `now` commits the whole disk pool first. */
int disk_usage(
	struct keeper *k, const struct disk_name *disk, bool now, int64_t *used, int64_t *limit);
void disk_next(struct keeper *k, enum disk_kind kind, const char *after, char ret[ID_SIZE]);
/* Removes the leftovers of interrupted operations. */
void disk_clean_up(struct keeper *k);
/* There is work for it, or need of room. */
void sweeper_tell(struct keeper *k);
/* Removes the result of an interrupted operation, which is reported as failed. */
void disk_undo(struct keeper *k, const struct keeper_request *q);
int disk_open(struct keeper *k, const struct disk_name *disk);

/* ---- freeze.c ---- */

struct held {
	const char *id; /* NULL: no sandbox is held */
	int64_t since_us;
};

/* A sandbox stops where it is, unless it stands already; another kind of disk needs nothing. */
int hold_sandbox(struct keeper *k, const struct disk_name *disk, int disk_fd, struct held *ret);
void let_go(struct keeper *k, const struct held *h, int64_t *frozen_us);
/* Thaws the sandboxes of a keeper that was killed while it held them. */
void thaw_interrupted(struct keeper *k);

/* ---- copy.c: where there are no snapshots ---- */

/* The whole tree below from_fd into the empty directory to_fd. */
int keeper_copy_tree(int from_fd, int to_fd);
bool copy_can_reflink(int dir_fd);

/* ---- measure.c ---- */

int measure_tree(int fd, int64_t *bytes, int64_t *files);

/* ---- diff_serve.c ---- */

/* Walks and writes to the pipe, in a process of its own that gives up nearly everything first. */
void diff_serve(struct keeper *k, const struct keeper_request *q, int pipe_fd)
	__attribute__((noreturn));

/* ---- sweep.c ---- */

void sweeper_main(int trash_fd, int work_fd) __attribute__((noreturn));

/* ---- skeleton.c ---- */

/* Makes or finds the base template's own files; fills k->template_path. */
int skeleton_open(struct keeper *k, const char *trust, struct error *e);

/* ---- ops.c ---- */

void keeper_main(struct keeper *k) __attribute__((noreturn));

/* ---- confine.c ---- */

/* Drops all rights that work on disks does not need; used by the sweeper, too. */
int confine_keeper(struct error *e);
/* Drops all rights but reading below these directories; entries of -1 are ignored. */
int confine_reader(const int *dirs, size_t count);
