/* Rows of checkpoints and snapshots. */
#pragma once

#include "model/snapshot.h"
#include "store/store.h"

struct checkpoint_row {
	const char *id;
	const char *sandbox;
	const char *name;
	const char *parent; /* the one before it; "": none */
	int64_t created_ms;
};

void store_put_checkpoint(
	struct store *s, const struct checkpoint_row *row, store_done_fn *done, void *arg);
void store_delete_checkpoint(struct store *s, const char *id, store_done_fn *done, void *arg);
/* All those of one sandbox. */
void store_delete_checkpoints(struct store *s, const char *sandbox);
/* At start, before the loop runs; in the order of their creation. */
int store_each_checkpoint(struct store *s, void (*each)(void *arg, const void *row), void *arg);

void store_put_snapshot(
	struct store *s, const struct snapshot_record *row, store_done_fn *done, void *arg);
void store_delete_snapshot(struct store *s, const char *id, store_done_fn *done, void *arg);
int store_each_snapshot(struct store *s, void (*each)(void *arg, const void *row), void *arg);
