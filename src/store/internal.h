/* What the files of this room share. */
#pragma once

#include "store/backend.h"
#include "store/queue.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/table.h"

#define STORE_TEXTS_MAX 64

struct store {
	const struct backend *backend;
	struct connection
		*connection; /* for reading at start, before the queue's thread has work */
	sqlite3 *db;         /* the same, for what is not a table yet */
	struct queue *queue;
	/* Statements made of a table's description; used by the loop only. */
	struct {
		const struct store_table *table;
		const char *text;
		char *sql;
	} texts[STORE_TEXTS_MAX];
};

/* Never NULL. */
const char *store_text_at(sqlite3_stmt *st, int column);

/* ---- table.c ---- */

/*
 * A literal with its words replaced: $name, $columns (that a row is read from), $stored, $values,
 * $key, $update, $order.
 */
const char *store_sql(struct store *s, const struct store_table *t, const char *text);
/* Fills a row from the $columns of a result; its texts are the result's. */
void store_read(const struct store_table *t, const struct value *columns, void *row);
/* Creates the table, or adds the columns that a database of an older program does not have. */
int store_complete(struct store *s, const struct store_table *t, struct error *e);

extern const struct store_table store_sandboxes, store_events, store_volumes, store_contexts,
	store_checkpoints, store_snapshots;
