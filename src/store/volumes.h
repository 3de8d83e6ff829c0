/* Rows of volumes. */
#pragma once

#include "store/store.h"

struct volume_row {
	const char *id;
	const char *tenant;
	const char *name;
	int64_t limit; /* bytes; 0: none */
	int64_t created_ms;
};

void store_put_volume(
	struct store *s, const struct volume_row *row, store_done_fn *done, void *arg);
void store_delete_volume(struct store *s, const char *id, store_done_fn *done, void *arg);
/* At start, before the loop runs; in the order of their creation. */
int store_each_volume(struct store *s, void (*each)(void *arg, const void *row), void *arg);
