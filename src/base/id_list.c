#include "base/id_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fd.h"

#define FIRST_CAP 64u

/* The capacity is the next power of two, so that it need not be kept. */
static void id_list_append(struct id_list *l, const char *id)
{
	if (l->count == 0 || (l->count >= FIRST_CAP && (l->count & (l->count - 1)) == 0)) {
		size_t cap = l->count ? l->count * 2 : FIRST_CAP;
		char(*grown)[ID_SIZE] = realloc(l->ids, cap * sizeof *grown);
		if (!grown)
			abort();
		l->ids = grown;
	}
	memcpy(l->ids[l->count], id, ID_LEN);
	l->ids[l->count++][ID_LEN] = '\0';
}

void id_list_add(struct id_list *l, int dir_fd)
{
	autodir DIR *dir = fd_open_dir_at(dir_fd, ".");
	struct dirent *entry;
	while (dir && (entry = readdir(dir)) != NULL) {
		entry->d_name[strcspn(entry->d_name, ".")] = '\0';
		if (id_is_valid(entry->d_name))
			id_list_append(l, entry->d_name);
	}
}

static int id_list_compare(const void *a, const void *b)
{
	return memcmp(a, b, ID_SIZE);
}

void id_list_sort(struct id_list *l)
{
	size_t kept = 0;
	if (l->count > 0)
		qsort(l->ids, l->count, sizeof *l->ids, id_list_compare);
	for (size_t i = 0; i < l->count; i++)
		if (kept == 0 || memcmp(l->ids[kept - 1], l->ids[i], ID_SIZE) != 0)
			memmove(l->ids[kept++], l->ids[i], ID_SIZE);
	l->count = kept;
}

const char *id_list_after(const struct id_list *l, const char *id)
{
	size_t low = 0, high = l->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(l->ids[middle], id) > 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low < l->count ? l->ids[low] : NULL;
}

void id_list_free(struct id_list *l)
{
	free(l->ids);
	*l = (struct id_list){0};
}
