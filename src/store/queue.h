/*
 * The database's own thread. An operation is a statement with its values, copied; it is run in
 * order with whatever else waits, in one transaction, and comes back to the loop after the commit.
 *
 * What is submitted in one turn of the loop is kept together or refused together, whatever dies:
 * the thread gets it all at once, at the turn's end. That is how a row and the event that tells of
 * it cannot part.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "store/backend.h"
#include "store/store.h"

struct operation {
	struct operation *next;
	const char *sql; /* its address is the key of the prepared statement */
	/* Called on the loop for each result row, then once with NULL columns. */
	void (*row)(struct operation *op, const struct value *columns, size_t count);
	struct row *rows;
	struct row **rows_end;
	int error;
	bool ends_turn;
	/* Of the public call: */
	store_done_fn *done;
	store_added_fn *added;
	bool is_new; /* what was to be added */
	void (*each)(void *arg, const char *id);
	void *arg;
	size_t value_count, value_max;
	struct value values[]; /* one for each '?' */
};

struct operation *operation_new(const char *sql);
/* With at most so many values. */
struct operation *operation_with(const char *sql, size_t max);
void operation_add_int(struct operation *op, int64_t number);
void operation_add_text(struct operation *op, const char *text);
void operation_add_blob(struct operation *op, const void *data, size_t len);

struct queue;
int queue_open(struct queue **ret, uv_loop_t *loop, const struct backend *backend,
	struct connection *connection);
void queue_submit(struct queue *q, struct operation *op);
/* Something was submitted and has not come back. */
bool queue_is_busy(const struct queue *q);
/* Runs what is queued, delivers it, ends the thread. The connection stays the caller's. */
void queue_close(struct queue *q);

/* To the store's own queue. */
void store_submit(struct store *s, struct operation *op, store_done_fn *done, void *arg);
