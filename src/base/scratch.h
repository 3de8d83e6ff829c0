/* Memory for one piece of work, given back all at once when the work is done. */
#pragma once

#include <stddef.h>

struct scratch {
	struct scratch_block *blocks;
};

/* Zeroed. */
void *scratch_alloc(struct scratch *s, size_t size);
void scratch_finish(struct scratch *s);

#define autoscratch __attribute__((cleanup(scratch_finish))) struct scratch
