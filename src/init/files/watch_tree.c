/* The directories that one WATCH watches: found by their inotify descriptor, named by their path.
 */
#include "init/files/watch_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "init/files/files.h"

struct watch_node *watch_tree_find(const struct watch_tree *t, int wd)
{
	struct watch_node *n = t->buckets[(unsigned)wd % WATCH_TREE_BUCKETS];
	while (n && n->wd != wd)
		n = n->bucket_next;
	return n;
}

struct watch_node *watch_tree_child(const struct watch_node *parent, const char *name)
{
	struct watch_node *n = parent->children;
	while (n && strcmp(n->name, name) != 0)
		n = n->next;
	return n;
}

static void watch_tree_attach(struct watch_node *n, struct watch_node *parent)
{
	n->parent = parent;
	n->prev = NULL;
	n->next = parent->children;
	if (n->next)
		n->next->prev = n;
	parent->children = n;
}

static void watch_tree_detach(struct watch_node *n)
{
	if (!n->parent)
		return;
	if (n->prev)
		n->prev->next = n->next;
	else
		n->parent->children = n->next;
	if (n->next)
		n->next->prev = n->prev;
}

static void watch_tree_unhash(struct watch_tree *t, struct watch_node *n)
{
	struct watch_node **at = &t->buckets[(unsigned)n->wd % WATCH_TREE_BUCKETS];
	while (*at != n)
		at = &(*at)->bucket_next;
	*at = n->bucket_next;
}

struct watch_node *watch_tree_add(
	struct watch_tree *t, int wd, struct watch_node *parent, const char *name)
{
	struct watch_node *n = calloc(1, sizeof *n + strlen(name) + 1);
	if (!n)
		return NULL;
	n->wd = wd;
	memcpy(n->name, name, strlen(name) + 1);
	struct watch_node **bucket = &t->buckets[(unsigned)wd % WATCH_TREE_BUCKETS];
	n->bucket_next = *bucket;
	*bucket = n;
	if (parent)
		watch_tree_attach(n, parent);
	t->count++;
	return n;
}

/* Removes the deepest nodes first, without recursion: the tree may be deep. */
void watch_tree_remove(struct watch_tree *t, struct watch_node *top)
{
	for (struct watch_node *n = top;;) {
		while (n->children)
			n = n->children;
		struct watch_node *parent = n->parent;
		bool last = n == top;
		watch_tree_detach(n);
		watch_tree_unhash(t, n);
		inotify_rm_watch(t->fd, n->wd);
		free(n);
		t->count--;
		if (last)
			return;
		n = parent;
	}
}

struct watch_node *watch_tree_move(
	struct watch_tree *t, struct watch_node *n, struct watch_node *parent, const char *name)
{
	struct watch_node *copy = malloc(sizeof *copy + strlen(name) + 1);
	if (!copy)
		return NULL;
	watch_tree_detach(n);
	watch_tree_unhash(t, n);
	*copy = *n;
	memcpy(copy->name, name, strlen(name) + 1);
	for (struct watch_node *c = copy->children; c; c = c->next)
		c->parent = copy;
	free(n);
	struct watch_node **bucket = &t->buckets[(unsigned)copy->wd % WATCH_TREE_BUCKETS];
	copy->bucket_next = *bucket;
	*bucket = copy;
	watch_tree_attach(copy, parent);
	return copy;
}

/* Writes the path from its end to its beginning, because nodes know their parents only. */
int watch_tree_path(const struct watch_node *n, const char *name, struct buf *out)
{
	size_t len = strlen(name);
	for (const struct watch_node *at = n; at->parent; at = at->parent)
		len += strlen(at->name) + 1;
	out->len = 0;
	if (!buf_reserve(out, len + 1))
		return -ENOMEM;
	char *end = out->data + len;
	*end = '\0';
	end -= strlen(name);
	memcpy(end, name, strlen(name));
	for (const struct watch_node *at = n; at->parent; at = at->parent) {
		*--end = '/';
		end -= strlen(at->name);
		memcpy(end, at->name, strlen(at->name));
	}
	out->len = len + 1;
	return len < WALK_PATH_MAX ? 0 : -ENAMETOOLONG;
}

void watch_tree_finish(struct watch_tree *t)
{
	if (t->fd >= 0)
		close(t->fd); /* removes all watches */
	for (size_t i = 0; i < WATCH_TREE_BUCKETS; i++) {
		while (t->buckets[i]) {
			struct watch_node *next = t->buckets[i]->bucket_next;
			free(t->buckets[i]);
			t->buckets[i] = next;
		}
	}
}
