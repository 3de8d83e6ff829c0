#pragma once

#include <stddef.h>

#include "base/buf.h"

#define WATCH_TREE_BUCKETS 4096u

/* A directory that is watched. */
struct watch_node {
	int wd;
	struct watch_node *parent, *children, *prev, *next; /* siblings in a list */
	struct watch_node *bucket_next;
	char name[];
};

struct watch_tree {
	int fd; /* of inotify */
	struct watch_node *top;
	struct watch_node *buckets[WATCH_TREE_BUCKETS]; /* by watch descriptor */
	size_t count;
};

/* Returns NULL if no node has that watch descriptor. */
struct watch_node *watch_tree_find(const struct watch_tree *t, int wd);
struct watch_node *watch_tree_child(const struct watch_node *parent, const char *name);
/* Returns NULL without memory. Only the top has no parent. */
struct watch_node *watch_tree_add(
	struct watch_tree *t, int wd, struct watch_node *parent, const char *name);
/* Gives a node another parent and name. Returns the node's new address, NULL without memory. */
struct watch_node *watch_tree_move(
	struct watch_tree *t, struct watch_node *n, struct watch_node *parent, const char *name);
/* Ends the watches of a directory and of all below it. */
void watch_tree_remove(struct watch_tree *t, struct watch_node *top);
/*
 * Writes the path of `name` in a directory, relative to the top, with a NUL. Returns -ENAMETOOLONG
 * if it has more than WALK_PATH_MAX bytes, -ENOMEM without memory.
 */
int watch_tree_path(const struct watch_node *n, const char *name, struct buf *out);
/* Closes the inotify descriptor and frees all nodes. */
void watch_tree_finish(struct watch_tree *t);
