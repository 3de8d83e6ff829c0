#include "keeper/hard_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

struct hard_link {
	struct {
		dev_t device;
		ino_t inode;
	} key;
	UT_hash_handle hh;
	char path[];
};

static void set_key(struct hard_link *l, const struct stat *st)
{
	/* Padding is part of the key. */
	memset(&l->key, 0, sizeof l->key);
	l->key.device = st->st_dev;
	l->key.inode = st->st_ino;
}

const char *hard_links_find(const struct hard_links *l, const struct stat *st)
{
	struct hard_link wanted, *found = NULL;
	set_key(&wanted, st);
	HASH_FIND(hh, l->first, &wanted.key, sizeof wanted.key, found);
	return found ? found->path : NULL;
}

int hard_links_add(struct hard_links *l, const struct stat *st, const char *dir, const char *name)
{
	size_t dir_len = strlen(dir), name_len = strlen(name);
	size_t size = sizeof(struct hard_link) + dir_len + name_len + 1;
	if (l->bytes + size > HARD_LINKS_BYTES_MAX)
		return -EMLINK;
	struct hard_link *fresh = malloc(size);
	if (!fresh)
		return -ENOMEM;
	set_key(fresh, st);
	memcpy(fresh->path, dir, dir_len);
	memcpy(fresh->path + dir_len, name, name_len + 1);
	HASH_ADD(hh, l->first, key, sizeof fresh->key, fresh);
	if (!fresh->hh.tbl) {
		free(fresh);
		return -ENOMEM;
	}
	l->bytes += size;
	return 0;
}

void hard_links_finish(struct hard_links *l)
{
	struct hard_link *at, *next;
	HASH_ITER (hh, l->first, at, next) {
		HASH_DELETE(hh, l->first, at);
		free(at);
	}
	l->bytes = 0;
}
