/*
 * Tables of the store: what put, delete, find and each need to know of one is its name and the
 * fields of its struct (base/field.h); rows without a column are not kept. Statements are made of
 * the description when they are first used, and prepared once.
 */
#pragma once

#include "base/field.h"
#include "store/store.h"

struct store_table {
	const char *name;
	const struct field_table *fields;
	const char *order; /* of store_each */
};

/* A row that is there is updated, but for its fixed columns. */
void store_put(struct store *s, const struct store_table *t, const void *row, store_done_fn *done,
	void *arg);
/* Adds a row; one of its key that is there stays as it is, and is_new is false. */
void store_add(struct store *s, const struct store_table *t, const void *row, store_added_fn *added,
	void *arg);
/* Deletes a row of a table with a single key. */
void store_delete(struct store *s, const struct store_table *t, const char *key,
	store_done_fn *done, void *arg);
void store_find(struct store *s, const struct store_table *t, const char *key,
	store_found_fn *found, void *arg);
/* At start, before the loop runs. where: a literal, or NULL for all. */
int store_each(struct store *s, const struct store_table *t, const char *where,
	void (*each)(void *arg, const void *row), void *arg);
