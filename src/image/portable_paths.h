/*
 * The paths that were used, each once, in eight bytes: by a keyed hash of 64 bits, so that
 * outsiders cannot make two of them collide.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct portable_paths {
	uint64_t *slots; /* 0: free */
	size_t count, capacity;
	unsigned char key[16];
};

/* -EEXIST: it was used before; -ENOMEM. */
int portable_paths_use(struct portable_paths *p, const char *path);
void portable_paths_finish(struct portable_paths *p);
