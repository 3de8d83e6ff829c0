#include "base/mem.h"
#include "base/scratch.h"

#include <stdlib.h>

struct scratch_block {
	struct scratch_block *next;
	void (*release)(void *p);
	void *owned;
	max_align_t data[];
};

void *scratch_alloc(struct scratch *s, size_t size)
{
	struct scratch_block *block = mem_new(sizeof *block + size);
	block->next = s->blocks;
	s->blocks = block;
	return block->data;
}

void scratch_own(struct scratch *s, void *p, void (*release)(void *p))
{
	scratch_alloc(s, 0);
	s->blocks->release = release;
	s->blocks->owned = p;
}

void scratch_finish(struct scratch *s)
{
	while (s->blocks) {
		struct scratch_block *block = s->blocks;
		s->blocks = block->next;
		if (block->owned)
			block->release(block->owned);
		free(block);
	}
}
