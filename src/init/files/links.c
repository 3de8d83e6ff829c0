#include "init/files/files.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS  4096u
#define KEPT_MAX (8u << 20)

struct link_seen {
	struct link_seen *next;
	dev_t dev;
	ino_t ino;
	char path[];
};

const char *links_seen(struct links *l, const struct stat *st, const char *path)
{
	if (!l->buckets && !(l->buckets = calloc(BUCKETS, sizeof(struct link_seen *))))
		return NULL;
	struct link_seen **bucket = &l->buckets[(st->st_ino * 2654435761u ^ st->st_dev) % BUCKETS];
	for (const struct link_seen *s = *bucket; s; s = s->next)
		if (s->ino == st->st_ino && s->dev == st->st_dev)
			return s->path;
	size_t size = sizeof(struct link_seen) + strlen(path) + 1;
	struct link_seen *seen = l->size + size > KEPT_MAX ? NULL : malloc(size);
	if (!seen)
		return NULL;
	*seen = (struct link_seen){*bucket, st->st_dev, st->st_ino};
	memcpy(seen->path, path, strlen(path) + 1);
	*bucket = seen;
	l->size += size;
	return NULL;
}

void links_finish(struct links *l)
{
	for (size_t i = 0; l->buckets && i < BUCKETS; i++) {
		while (l->buckets[i]) {
			struct link_seen *next = l->buckets[i]->next;
			free(l->buckets[i]);
			l->buckets[i] = next;
		}
	}
	free(l->buckets);
	*l = (struct links){0};
}
