/*
 * The ids that directories name, in order and each once: read as a whole, so that walking through
 * all of them costs one look at the directory and not one for each.
 */
#pragma once

#include <stddef.h>

#include "base/id.h"

struct id_list {
	char (*ids)[ID_SIZE];
	size_t count;
};

/* Adds the entries that are an id, up to their first dot: "ID", "ID.sock". Out of order until
 * id_list_sort. A directory that cannot be opened has none. */
void id_list_add(struct id_list *l, int dir_fd);
void id_list_sort(struct id_list *l);
/* Returns the first id greater than this one, or NULL. */
const char *id_list_after(const struct id_list *l, const char *id);
void id_list_free(struct id_list *l);
