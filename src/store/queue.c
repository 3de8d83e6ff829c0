#include "store/queue.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/schedule.h"

#define UNTAKEN_MAX (8u << 20)

struct row {
	struct row *next;
	size_t count;
	struct value columns[];
};

struct queue {
	const struct backend *backend;
	struct connection *connection;
	struct reserve *reserve;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_cond_t taken; /* the loop has taken what is finished */
	uv_async_t async;
	uv_prepare_t prepare; /* the end of the loop's turn: the thread gets all of it */
	unsigned handles_open;
	struct operation *turn, *turn_last; /* the loop's own, until then */
	unsigned under_way;                 /* the loop's own, like the rest up to `waiting` */
	uint64_t submitted, delivered;
	struct queue *writes;               /* this queue has reads, which follow them; or NULL */
	struct queue *reads;                /* those that follow this queue; or NULL */
	struct operation *held, **held_end; /* reads whose writes are under way */
	struct operation *waiting, **waiting_end;
	struct operation *finished, **finished_end;
	size_t untaken; /* bytes that were read, and are finished */
	bool closing;
};

/* ---- operations ---- */

struct operation *operation_new(const char *sql)
{
	size_t max = 0;
	for (const char *c = sql; *c; c++)
		max += *c == '?';
	return operation_with(sql, max);
}

struct operation *operation_with(const char *sql, size_t max)
{
	struct operation *op = mem_new(sizeof *op + max * sizeof op->values[0]);
	op->sql = sql;
	op->value_max = max;
	op->rows_end = &op->rows;
	return op;
}

static struct value *operation_value(struct operation *op)
{
	assert(op->value_count < op->value_max && "an operation is made with room for its values");
	return &op->values[op->value_count++];
}

static void value_set_bytes(struct value *v, const void *data, size_t len)
{
	v->bytes = mem_new(len + 1);
	if (len)
		memcpy(v->bytes, data, len);
	v->bytes[len] = '\0';
	v->len = len;
}

void operation_add_int(struct operation *op, int64_t number)
{
	*operation_value(op) = (struct value){.kind = STORED_NUMBER, .number = number};
}

void operation_add_text(struct operation *op, const char *text)
{
	struct value *v = operation_value(op);
	v->kind = STORED_TEXT;
	value_set_bytes(v, text ? text : "", text ? strlen(text) : 0);
}

void operation_add_blob(struct operation *op, const void *data, size_t len)
{
	struct value *v = operation_value(op);
	v->kind = STORED_BYTES;
	value_set_bytes(v, data, len);
}

static void values_finish(struct value *values, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(values[i].bytes);
}

static void drop_rows(struct operation *op)
{
	while (op->rows) {
		struct row *row = op->rows;
		op->rows = row->next;
		values_finish(row->columns, row->count);
		free(row);
	}
	op->rows_end = &op->rows;
}

static void operation_free(struct operation *op)
{
	drop_rows(op);
	values_finish(op->values, op->value_count);
	free(op);
}

/* ---- on the database's thread ---- */

static void keep_row(void *arg, const struct value *columns, size_t count)
{
	struct operation *op = arg;
	struct row *row = mem_new(sizeof *row + count * sizeof row->columns[0]);
	row->count = count;
	for (size_t i = 0; i < count; i++) {
		row->columns[i] = (struct value){columns[i].kind, columns[i].number, NULL, 0};
		op->bytes += sizeof row->columns[i] + columns[i].len;
		if (columns[i].kind != STORED_NUMBER)
			value_set_bytes(&row->columns[i], columns[i].bytes, columns[i].len);
	}
	*op->rows_end = row;
	op->rows_end = &row->next;
}

static int run_operation(struct queue *q, struct operation *op)
{
	return q->backend->run(q->connection, op->sql, op->values, op->value_count, keep_row, op);
}

static int run_simple(struct queue *q, const char *sql)
{
	return q->backend->script(q->connection, sql);
}

/* Up to `end`, kept or refused together. */
static int run_transaction(struct queue *q, struct operation *begin, const struct operation *end)
{
	FAULT_POINT();
	int error = run_simple(q, q->backend->begin);
	for (struct operation *op = begin; op != end && error == 0; op = op->next)
		error = run_operation(q, op);
	FAULT_POINT();
	if (error == 0)
		error = run_simple(q, "COMMIT");
	FAULT_POINT();
	if (error == 0)
		return 0;
	log_error(
		"the database refused a transaction", "error", q->backend->message(q->connection));
	run_simple(q, "ROLLBACK");
	for (struct operation *op = begin; op != end; op = op->next) {
		op->error = error;
		drop_rows(op); /* what they tell has not happened */
	}
	return error;
}

static bool makes_room(const struct operation *begin, const struct operation *end)
{
	for (const struct operation *op = begin; op != end; op = op->next)
		if (op->makes_room)
			return true;
	return false;
}

/* The operations of one turn. What makes room is tried again for as long as the reserve lasts. */
static void run_turn(struct queue *q, struct operation *begin, const struct operation *end)
{
	while (run_transaction(q, begin, end) == -ENOSPC && makes_room(begin, end) &&
		reserve_give(q->reserve))
		for (struct operation *op = begin; op != end; op = op->next)
			op->error = 0;
}

static struct operation *next_turn(struct operation *op)
{
	while (!op->ends_turn)
		op = op->next;
	return op->next;
}

/* One transaction for all of it; when that is refused, one for each turn of the loop. */
static void run_batch(struct queue *q, struct operation *batch)
{
	int error = run_transaction(q, batch, NULL);
	if (error == 0)
		reserve_fill(q->reserve);
	if (error == 0 || (!next_turn(batch) && !(error == -ENOSPC && makes_room(batch, NULL))))
		return;
	for (struct operation *op = batch; op; op = op->next)
		op->error = 0;
	for (struct operation *op = batch, *next; op; op = next) {
		next = next_turn(op);
		run_turn(q, op, next);
	}
}

/* With a view of its own of the database: the one before has seen nothing newer. */
static void run_read(struct queue *q, struct operation *op)
{
	op->error = run_operation(q, op);
	if (op->error == 0)
		return;
	log_error("the database could not be read", "error", q->backend->message(q->connection));
	drop_rows(op);
}

/* The list of those up to *end is finished. Called with the lock. */
static void queue_finish(struct queue *q, struct operation *list, struct operation **end)
{
	*q->finished_end = list;
	q->finished_end = end;
	uv_async_send(&q->async);
}

static void run_reads(struct queue *q, struct operation *batch)
{
	while (batch) {
		struct operation *op = batch;
		batch = op->next;
		op->next = NULL;
		run_read(q, op);
		pthread_mutex_lock(&q->lock);
		q->untaken += op->bytes;
		queue_finish(q, op, &op->next);
		while (q->untaken > UNTAKEN_MAX && !q->closing)
			pthread_cond_wait(&q->taken, &q->lock);
		pthread_mutex_unlock(&q->lock);
	}
}

static void *queue_main(void *arg)
{
	struct queue *q = arg;
	if (!q->writes)
		schedule_promptly(); /* creates wait for it */
	pthread_mutex_lock(&q->lock);
	for (;;) {
		while (!q->waiting && !q->closing)
			pthread_cond_wait(&q->wake, &q->lock);
		if (!q->waiting)
			break;
		struct operation *batch = take_ptr(q->waiting), **end = q->waiting_end;
		q->waiting_end = &q->waiting;
		pthread_mutex_unlock(&q->lock);
		if (q->writes)
			run_reads(q, batch);
		else
			run_batch(q, batch);
		pthread_mutex_lock(&q->lock);
		if (!q->writes)
			queue_finish(q, batch, end);
	}
	pthread_mutex_unlock(&q->lock);
	return NULL;
}

/* ---- on the loop ---- */

static void queue_call_back(struct operation *op)
{
	for (struct row *row = op->rows; row && op->row; row = row->next)
		op->row(op, row->columns, row->count);
	if (op->row)
		op->row(op, NULL, 0);
	if (op->done)
		op->done(op->arg, op->error);
}

static void queue_append(struct queue *q, struct operation *op);

static void queue_release_held(struct queue *q)
{
	while (q->held && q->held->follows <= q->writes->delivered) {
		struct operation *op = q->held;
		q->held = op->next;
		op->next = NULL;
		queue_append(q, op);
	}
	if (!q->held)
		q->held_end = &q->held;
}

static void queue_deliver(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	struct operation *list = take_ptr(q->finished);
	q->finished_end = &q->finished;
	q->untaken = 0;
	pthread_cond_signal(&q->taken);
	pthread_mutex_unlock(&q->lock);
	while (list) {
		struct operation *op = list;
		list = op->next;
		FAULT_POINT();
		q->under_way--;
		q->delivered++;
		queue_call_back(op);
		operation_free(op);
	}
	if (q->reads)
		queue_release_held(q->reads);
}

static void async_ready(uv_async_t *async)
{
	queue_deliver(async->data);
}

static struct operation *queue_take_turn(struct queue *q)
{
	if (q->turn)
		q->turn_last->ends_turn = true;
	return take_ptr(q->turn);
}

static void queue_hand_over(struct queue *q)
{
	struct operation *turn = queue_take_turn(q);
	pthread_mutex_lock(&q->lock);
	if (turn) {
		*q->waiting_end = turn;
		q->waiting_end = &q->turn_last->next;
	}
	pthread_cond_signal(&q->wake);
	pthread_mutex_unlock(&q->lock);
}

static void turn_ended(uv_prepare_t *prepare)
{
	uv_prepare_stop(prepare);
	queue_hand_over(prepare->data);
}

static void queue_append(struct queue *q, struct operation *op)
{
	if (q->turn)
		q->turn_last->next = op;
	else
		q->turn = op;
	q->turn_last = op;
	uv_prepare_start(&q->prepare, turn_ended);
}

void queue_submit(struct queue *q, struct operation *op)
{
	q->under_way++;
	q->submitted++;
	op->follows = q->writes ? q->writes->submitted : 0;
	if (!q->writes || op->follows <= q->writes->delivered) {
		queue_append(q, op);
		return;
	}
	*q->held_end = op;
	q->held_end = &op->next;
}

bool queue_is_busy(const struct queue *q)
{
	return q->under_way > 0;
}

void queue_open(struct queue **ret, uv_loop_t *loop, const struct backend *backend,
	struct connection *connection, struct reserve *reserve, struct queue *writes)
{
	struct queue *q = mem_new(sizeof *q);
	q->backend = backend;
	q->connection = connection;
	q->reserve = reserve;
	q->writes = writes;
	if (writes)
		writes->reads = q;
	q->waiting_end = &q->waiting;
	q->finished_end = &q->finished;
	q->held_end = &q->held;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->wake, NULL);
	pthread_cond_init(&q->taken, NULL);
	uv_async_init(loop, &q->async, async_ready);
	uv_prepare_init(loop, &q->prepare);
	q->async.data = q->prepare.data = q;
	q->handles_open = 2;
	int r = pthread_create(&q->thread, NULL, queue_main, q);
	assert(r == 0 && "the store has its thread before anything else is started");
	(void)r;
	*ret = q;
}

static void queue_free(uv_handle_t *handle)
{
	struct queue *q = handle->data;
	if (--q->handles_open == 0)
		free(q);
}

bool queue_run_rest(struct queue *q)
{
	struct operation *batch = queue_take_turn(q);
	if (!batch)
		return false;
	if (q->writes) {
		run_reads(q, batch);
	} else {
		run_batch(q, batch);
		q->finished = batch;
	}
	queue_deliver(q);
	return true;
}

void queue_stop(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closing = true;
	pthread_cond_signal(&q->taken);
	pthread_mutex_unlock(&q->lock);
	queue_hand_over(q);
	pthread_join(q->thread, NULL);
	queue_deliver(q);
}

void queue_close(struct queue *q)
{
	uv_close((uv_handle_t *)&q->async, queue_free);
	uv_close((uv_handle_t *)&q->prepare, queue_free);
}
