/*
 * Files with several names, and the first name that was met. A hostile tree has a hundred thousand
 * of them with paths of four thousand bytes: what is remembered is bounded by bytes.
 */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#define HARD_LINKS_BYTES_MAX (32u << 20)

struct hard_links {
	struct hard_link *first;
	size_t bytes;
};

/* Returns the first name of this file, or NULL. */
const char *hard_links_find(const struct hard_links *l, const struct stat *st);
/* -EMLINK: there is no room for another. */
int hard_links_add(struct hard_links *l, const struct stat *st, const char *dir, const char *name);
void hard_links_finish(struct hard_links *l);
