/* A checkpoint as everybody may read it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CHECKPOINTS_PER_SANDBOX 100
#define CHECKPOINT_NAME_MAX     63

struct checkpoint_view {
	const char *id, *name;
	const char *parent;      /* id of the checkpoint before it; "": none */
	const char *parent_name; /* "": there is none, or it was deleted */
	int64_t created_ms;
	bool lost; /* its disk is gone */
};
