#include "init/files/files.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS  4096u
#define KEPT_MAX (8u << 20)

struct hard_link {
	struct hard_link *next;
	dev_t dev;
	ino_t ino;
	char path[];
};

const char *hard_links_seen(struct hard_links *l, const struct stat *st, const char *path)
{
	if (!l->buckets && !(l->buckets = calloc(BUCKETS, sizeof(struct hard_link *))))
		return NULL;
	struct hard_link **bucket = &l->buckets[(st->st_ino * 2654435761u ^ st->st_dev) % BUCKETS];
	for (const struct hard_link *s = *bucket; s; s = s->next)
		if (s->ino == st->st_ino && s->dev == st->st_dev)
			return s->path;
	size_t size = sizeof(struct hard_link) + strlen(path) + 1;
	struct hard_link *seen = l->size + size > KEPT_MAX ? NULL : malloc(size);
	if (!seen)
		return NULL;
	*seen = (struct hard_link){*bucket, st->st_dev, st->st_ino};
	memcpy(seen->path, path, strlen(path) + 1);
	*bucket = seen;
	l->size += size;
	return NULL;
}

void hard_links_finish(struct hard_links *l)
{
	for (size_t i = 0; l->buckets && i < BUCKETS; i++) {
		while (l->buckets[i]) {
			struct hard_link *next = l->buckets[i]->next;
			free(l->buckets[i]);
			l->buckets[i] = next;
		}
	}
	free(l->buckets);
	*l = (struct hard_links){0};
}
