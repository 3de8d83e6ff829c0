/* The view of a checkpoint. */
#pragma once

#include <stdint.h>

#include "base/field.h"
#include "model/disk.h"

#define CHECKPOINTS_PER_SANDBOX 100
#define CHECKPOINT_NAME_MAX     63

struct checkpoint_view {
	const char *id, *name;
	const char *parent;      /* id of the checkpoint before it; "": none */
	const char *parent_name; /* "": there is none, or it was deleted */
	int64_t created_ms;
	enum disk_status status;
};

extern const struct field_table checkpoint_model;
