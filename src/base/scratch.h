/* Memory for one piece of work, given back all at once when the work is done. */
#pragma once

#include <stddef.h>

struct scratch {
	struct scratch_block *blocks;
};

/* Zeroed. */
void *scratch_alloc(struct scratch *s, size_t size);
/* Calls release(p) when the scratch memory is freed. p may be NULL. */
void scratch_own(struct scratch *s, void *p, void (*release)(void *p));
void scratch_finish(struct scratch *s);

#define autoscratch __attribute__((cleanup(scratch_finish))) struct scratch
