/* Disks as data: the space that one takes, and changes on it. */
#pragma once

#include <stdint.h>

#include "wire/diff.h"
#include "wire/keeper.h"

/* The state of the disk of a snapshot, checkpoint or volume. */
enum disk_status {
	DISK_READY,
	DISK_LOST,   /* it is gone, by no doing of the server */
	DISK_DELETED /* only what stands on it remembers it; of snapshots alone */
};

/* Names of the states, for objects that are not remembered after their end. */
extern const char *const disk_status_names[];

struct disk_usage {
	enum disk_kind kind;
	const char *id;
	const char *name;    /* of a snapshot with its tag; "": none */
	const char *sandbox; /* of a checkpoint: whose it is; "" */
	int64_t bytes, files;
	int64_t limit; /* 0: none */
};

struct disk_change {
	enum diff_kind kind;
	const char *path;            /* any bytes but NUL */
	uint32_t old_mode, new_mode; /* with the type; 0: there is none */
	uint64_t old_size, new_size;
};
