/*
 * The database's own threads. An operation is a statement with its values, copied. There are two
 * queues, each with a connection and a thread, so that no write waits for a reader.
 *
 * The queue of writes runs operations in order with whatever else waits, in one transaction, and
 * they come back to the loop after the commit. What is submitted in one turn of the loop is kept
 * together or refused together, whatever dies: the thread gets it all at once, at the turn's end.
 * That is how a row and the event that tells of it cannot part.
 *
 * The queue of reads runs each operation by itself. A read sees every write that was submitted
 * before it: it begins when those have come back. While the loop has not taken what was read,
 * UNTAKEN_MAX bytes of it, nothing more is read: many long lists do not stand in memory together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "store/backend.h"
#include "store/reserve.h"
#include "store/store.h"

struct operation {
	struct operation *next;
	const char *sql; /* its address is the key of the prepared statement */
	/* Called on the loop for each result row, then once with NULL columns. */
	void (*row)(struct operation *op, const struct value *columns, size_t count);
	struct row *rows;
	struct row **rows_end;
	size_t bytes; /* of the rows */
	int error;
	bool ends_turn;
	bool makes_room;  /* it may use the reserve when the disk is full */
	uint64_t follows; /* of a read: how many writes were submitted before it */
	/* From the public call: */
	store_done_fn *done;
	store_added_fn *added;
	bool is_new; /* what was to be added */
	store_expired_fn *each;
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
/* reserve: of a queue of writes. writes: the queue whose operations those of this one, reads, must
 * see; NULL: it is of writes. */
void queue_open(struct queue **ret, uv_loop_t *loop, const struct backend *backend,
	struct connection *connection, struct reserve *reserve, struct queue *writes);
void queue_submit(struct queue *q, struct operation *op);
/* Something was submitted and has not come back. */
bool queue_is_busy(const struct queue *q);
/* Runs what is queued, delivers it, ends the thread. */
void queue_stop(struct queue *q);
/* Runs, in this thread, what was submitted after queue_stop. Returns whether there was any. */
bool queue_run_rest(struct queue *q);
/* Frees a stopped queue. The connection stays the caller's. */
void queue_close(struct queue *q);

/* To the store's own queues. */
void store_submit(struct store *s, struct operation *op, store_done_fn *done, void *arg);
void store_submit_read(struct store *s, struct operation *op, void *arg);
