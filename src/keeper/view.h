/*
 * A sandbox's files as it sees them, without mounting anything: the upper layer of a disk over the
 * lower one of its template. Two views of the same template can be compared.
 *
 *     whiteout     a character device 0:0 in the upper layer: the name is gone
 *     opaque       a directory whose lower one does not show through
 *     redirect     a directory that was moved: its lower one is elsewhere
 *
 * Everything is opened relative to a descriptor and without following links.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct keeper;
struct disk_name;

/* The layers of a view: with `base`, /usr is an overlay of its own. */
struct view {
	int root_upper, root_lower; /* -1: there is none */
	int usr_upper, usr_lower;
	bool has_usr;
};

/* One directory of a view; either may be -1. */
struct view_dir {
	int upper, lower;
	int top_lower; /* of the overlay it is in; borrowed. Redirects begin there */
	bool is_root;  /* of the view */
};

/* One name in a directory of a view. */
struct view_entry {
	bool exists;
	bool in_upper;
	int dir_fd; /* where it lies; borrowed */
	struct stat st;
};

int view_open(struct keeper *k, const struct disk_name *disk, const char *root, struct view *ret);
void view_close(struct view *v);
/* Borrows from the view. */
struct view_dir view_top(const struct view *v);
void view_look(
	const struct view *v, const struct view_dir *d, const char *name, struct view_entry *ret);
/* Enters an entry that is a directory; the caller closes it. */
int view_enter(const struct view *v, const struct view_dir *d, const char *name,
	const struct view_entry *e, struct view_dir *ret);
void view_dir_close(struct view_dir *d);
