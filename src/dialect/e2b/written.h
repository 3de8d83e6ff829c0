/*
 * The files that one request has written, so that none is written twice. Paths are known by a hash
 * under a key of the set's own: nobody outside can make two that meet, or a set that is slow.
 */
#pragma once

#include <sodium.h>

#include "base/error.h"

/* What one request may make the server remember: this set, and the answer that names every file. */
#define WRITTEN_MEMORY_MAX (8u << 20)

struct written {
	struct written_path *paths; /* NULL: none yet */
	unsigned char key[crypto_shorthash_siphashx24_KEYBYTES];
};

/*
 * Adds a path as the sandbox tells it: absolute, with names and ".." only. Negative: it is there
 * already, or there are too many; `answer_len` is how long the answer is by now.
 */
int written_add(struct written *w, const char *path, size_t answer_len, struct error *e);
void written_finish(struct written *w);
