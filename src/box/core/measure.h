/* Measures the space that a disk takes. */
#pragma once

#include "box/core/box.h"
#include "wire/keeper.h"

struct disk_measured {
	int error; /* an errno: it is gone, or cannot be read */
	int64_t bytes, files;
};

typedef void disk_measured_fn(void *arg, const struct disk_measured *m);
/* Asks the keeper; the callback cannot be taken back. */
void disk_measure(
	struct box *b, enum disk_kind kind, const char *id, disk_measured_fn *measured, void *arg);
