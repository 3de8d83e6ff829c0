#include "image/portable_paths.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static bool portable_paths_insert(uint64_t *slots, size_t capacity, uint64_t hash)
{
	size_t at = (size_t)hash & (capacity - 1);
	for (; slots[at]; at = (at + 1) & (capacity - 1))
		if (slots[at] == hash)
			return false;
	slots[at] = hash;
	return true;
}

static int portable_paths_grow(struct portable_paths *p)
{
	size_t capacity = p->capacity ? p->capacity * 2 : 1024;
	uint64_t *slots = calloc(capacity, sizeof *slots);
	if (!slots)
		return -ENOMEM;
	if (p->capacity == 0)
		randombytes_buf(p->key, sizeof p->key);
	for (size_t i = 0; i < p->capacity; i++)
		if (p->slots[i])
			portable_paths_insert(slots, capacity, p->slots[i]);
	free(p->slots);
	p->slots = slots;
	p->capacity = capacity;
	return 0;
}

int portable_paths_use(struct portable_paths *p, const char *path)
{
	uint64_t hash;
	if (p->count * 2 >= p->capacity && portable_paths_grow(p) < 0)
		return -ENOMEM;
	crypto_shorthash((unsigned char *)&hash, (const unsigned char *)path, strlen(path), p->key);
	if (!portable_paths_insert(p->slots, p->capacity, hash ? hash : 1))
		return -EEXIST;
	p->count++;
	return 0;
}

void portable_paths_finish(struct portable_paths *p)
{
	free(p->slots);
}
