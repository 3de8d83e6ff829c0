/*
 * Files with several names, and the first name that was met. A hostile tree has a hundred thousand
 * of them with paths of four thousand bytes: what is remembered is bounded by bytes.
 */
#pragma once

#include <stddef.h>
#include <sys/stat.h>

#define LINKS_BYTES_MAX (32u << 20)

struct links {
	struct link *first;
	size_t bytes;
};

/* The first name of this file, or NULL. */
const char *links_find(const struct links *l, const struct stat *st);
/* -EMLINK: there is no room for another. */
int links_add(struct links *l, const struct stat *st, const char *dir, const char *name);
void links_finish(struct links *l);
