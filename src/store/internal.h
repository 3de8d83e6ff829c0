/* Declarations that the files of this room share. */
#pragma once

#include "store/backend.h"
#include "store/queue.h"
#include "store/reserve.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/table.h"

#define STORE_TEXTS_MAX 64

struct store {
	const struct backend *backend;
	/*
	 * The connection of the writes; also for reading at start, before the queue's thread has
	 * work.
	 */
	struct connection *connection;
	struct connection *reading;
	struct queue *writes, *reads;
	struct reserve reserve;
	/* Statements made of a table's description; used by the loop only. */
	struct {
		const struct store_table *table;
		const char *text;
		char *sql;
	} texts[STORE_TEXTS_MAX];
};

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

/*
 * Runs a statement that selects the $columns of a table. A search tells the first row, or NULL; a
 * list each row, then NULL.
 */
void store_search(struct store *s, const struct store_table *t, struct operation *op,
	store_found_fn *found, void *arg);
void store_list(struct store *s, const struct store_table *t, struct operation *op,
	store_found_fn *each, void *arg);

/* Runs a statement that deletes at most ?2 rows older than ?1 and returns their ids. */
void store_expire(struct store *s, const char *sql, int64_t before_ms, unsigned limit,
	store_expired_fn *each, void *arg);

extern const struct store_table store_sandboxes, store_events, store_volumes, store_contexts,
	store_checkpoints, store_snapshots, store_templates, store_builds, store_tags, store_layers,
	store_processes, store_executions, store_keys, store_secrets, store_tenant_secrets;
