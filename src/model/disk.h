/* What is told about disks: what one takes, and what has changed on it. */
#pragma once

#include <stdint.h>

#include "wire/diff.h"
#include "wire/keeper.h"

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
