/*
 * What the front may ask of the keeper, the process that owns the disks: one fixed-size request,
 * one fixed-size reply, over a SEQPACKET socket pair. No strings but ids, no paths: a disk is a
 * kind and an id, and where it lies the keeper knows.
 *
 * Requests are answered when they are done, in any order. All of them may be sent twice: a keeper
 * that was started again says KEEPER_STARTED, and what had no answer is asked again. Replies carry
 * the asker's epoch, because the socket pair outlives a front.
 */
#pragma once

#include <stdint.h>

#include "base/id.h"

enum keeper_op {
	KEEPER_HELLO = 1, /* when nothing is under way any more → pool */
	KEEPER_MAKE,    /* disk, bytes: its limit; a copy of from, or empty. Fine if it is there */
	KEEPER_LIMIT,   /* disk, bytes */
	KEEPER_KEEP,    /* disk: a read-only copy of from, which is frozen meanwhile */
	KEEPER_RESTORE, /* disk: swapped for a copy of from, or for an empty one */
	KEEPER_DELETE,  /* disk; fine if it is not there */
	KEEPER_SET_ASIDE, /* disk: in no row; it is kept for a day where nobody finds it */
	KEEPER_OWN,       /* owner: the identity of the database that the disks belong to */
	KEEPER_USAGE,     /* disk → bytes, limit: as its quota counts them; quick */
	KEEPER_SAMPLE, /* the same as of the last commit, some seconds ago: costs next to nothing */
	KEEPER_MEASURE, /* disk → bytes, files: by looking at all of it */
	KEEPER_NEXT,    /* disk → the next id of that kind, in no particular order; "" ends */
	KEEPER_DIFF, /* disk, from, root, form → a pipe: the changes since `from` (wire/diff.h) */
	KEEPER_OP_END,
	KEEPER_STARTED = 100 /* said unasked, by a keeper that took over from a dead one */
};

enum disk_kind {
	DISK_NONE,
	DISK_BOX,        /* the upper layers of a sandbox: its changes over the root */
	DISK_CHECKPOINT, /* the same, as it was once */
	DISK_SNAPSHOT,   /* the same, as something to begin with */
	DISK_LAYER,      /* the same, of a template: to begin with, or its root/image as a root */
	DISK_VOLUME,     /* a directory that sandboxes mount: data */
	DISK_KIND_END
};

struct disk_name {
	uint32_t kind;
	char id[ID_SIZE];
};

struct keeper_request {
	uint32_t op;
	uint32_t sequence;
	uint32_t epoch;
	struct disk_name disk, from;
	char owner[ID_SIZE]; /* of an OWN */
	char root[ID_SIZE];  /* of a DIFF: the layer that holds the root; "": that of `base` */
	uint32_t form;       /* of a DIFF: enum diff_form */
	int64_t bytes;
};

enum disk_pool_kind {
	DISK_POOL_BTRFS,     /* the data directory is on btrfs */
	DISK_POOL_LOOP,      /* a btrfs of our own, in a file of the data directory */
	DISK_POOL_DIRECTORY, /* neither: disks are directories, and copies take their time */
	DISK_POOL_KIND_END
};

enum disk_pool_flag {
	DISK_POOL_QUOTA = 1,  /* a disk's limit is enforced */
	DISK_POOL_REFLINK = 2 /* a copy shares its data until it is written to */
};

struct keeper_reply {
	uint32_t op;
	uint32_t sequence;
	uint32_t epoch;
	int32_t error; /* errno, 0 when done */
	char id[ID_SIZE];
	uint32_t disk_pool; /* enum disk_pool_kind */
	uint32_t flags;
	int64_t bytes, limit, files;
	int64_t disk_pool_size, disk_pool_free;
	int64_t frozen_us; /* how long the sandbox stood still that was copied */
	/*
	 * DIFF: the reading end of the pipe. It is passed as ancillary data; the value in the
	 * message is meaningless.
	 */
	int32_t pipe_fd;
};

const char *disk_pool_kind_name(enum disk_pool_kind kind);
const char *disk_kind_name(enum disk_kind kind);

/*
 * Messages to the sweeper, one byte each: the trash has entries; or, with a descriptor, the last
 * reference to a dead sandbox's mounts, or the file that reclaims a paused sandbox's page cache.
 */
#define SWEEPER_TRASH   'x'
#define SWEEPER_MOUNTS  'm'
#define SWEEPER_RECLAIM 'r'
