/*
 * The rows of sandboxes: one for each that is meant to exist, and of those that have ended, until
 * their retention is over.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "store/internal.h"

const struct store_table store_sandboxes = {"sandboxes", &sandbox_model, "created_ms, id"};

static const char sql_end[] =
	"UPDATE sandboxes SET status = ?, ended_by = ?, ended_ms = ? WHERE id = ?";
static const char sql_put_usage[] =
	"UPDATE sandboxes SET cpu_us = ?, memory_byte_seconds = ? WHERE id = ?";
static const char sql_all[] =
	"SELECT $columns FROM sandboxes WHERE ended_ms = 0 ORDER BY created_ms, id";
static const char sql_get_ended[] =
	"SELECT $columns FROM sandboxes WHERE id = ? AND tenant = ? AND ended_ms > 0";
/*
 * The first parameters of all are the same, so that one function binds them. In the order of
 * creation, rows come by an index (sandbox_ended, or sandbox_ended_names) as far as the page goes,
 * however many there are; other orders sort all that match.
 */
#define ENDED " FROM sandboxes WHERE tenant = ?1 AND ended_ms > 0 AND status = ?2"
#define ENDED_FILTERED                                                                             \
	ENDED " AND (?3 = '' OR name = ?3) AND (?4 = '' OR project = ?4)"                          \
	      " AND (?5 = '' OR snapshot = ?5) AND (?6 < 0 OR ephemeral = ?6)"
#define ENDED_NAMED ENDED_FILTERED " AND name = ?3 AND name <> ''"
#define FORWARDS    " AND (created_ms, id) > (?7, ?8) ORDER BY created_ms, id LIMIT ?9 OFFSET ?10"
#define BACKWARDS                                                                                  \
	" AND (created_ms, id) < (?7, ?8) ORDER BY created_ms DESC, id DESC LIMIT ?9 OFFSET ?10"
#define ENDED_KEY                                                                                  \
	"CASE ?11 WHEN 1 THEN ended_ms WHEN 2 THEN name WHEN 4 THEN ephemeral ELSE executions END"
static const char sql_count_ended[] = "SELECT count(*)" ENDED;
static const char sql_count_filtered[] = "SELECT count(*)" ENDED_FILTERED;
static const char sql_ended_forwards[] = "SELECT $columns" ENDED_FILTERED FORWARDS;
static const char sql_ended_backwards[] = "SELECT $columns" ENDED_FILTERED BACKWARDS;
static const char sql_named_forwards[] = "SELECT $columns" ENDED_NAMED FORWARDS;
static const char sql_named_backwards[] = "SELECT $columns" ENDED_NAMED BACKWARDS;
static const char sql_ended_sorted[] =
	"SELECT $columns" ENDED_FILTERED " AND (created_ms, id) > (?7, ?8)"
	" ORDER BY iif(?12, NULL, " ENDED_KEY "), iif(?12, " ENDED_KEY
	", NULL) DESC, iif(?12, -created_ms, created_ms), id LIMIT ?9 OFFSET ?10";
static const char sql_expire[] =
	"DELETE FROM sandboxes WHERE id IN (SELECT id FROM sandboxes"
	" WHERE ended_ms > 0 AND ended_ms < ?1 ORDER BY ended_ms LIMIT ?2) RETURNING id";

void store_put_sandbox(
	struct store *s, const struct sandbox_record *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_sandboxes, row, done, arg);
}

void store_end_sandbox(struct store *s, const char *id, const char *status, const char *ended_by,
	int64_t ended_ms, store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(sql_end);
	operation_add_text(op, status);
	operation_add_text(op, ended_by);
	operation_add_int(op, ended_ms);
	operation_add_text(op, id);
	op->makes_room = true;
	store_submit(s, op, done, arg);
}

void store_put_usage(struct store *s, const char *id, int64_t cpu_us, int64_t memory_byte_seconds)
{
	struct operation *op = operation_new(sql_put_usage);
	operation_add_int(op, cpu_us);
	operation_add_int(op, memory_byte_seconds);
	operation_add_text(op, id);
	store_submit(s, op, NULL, NULL);
}

/* ---- reading ---- */

int store_each_sandbox(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_sandboxes, sql_all, each, arg);
}

void store_find_sandbox(struct store *s, const char *id, store_found_fn *found, void *arg)
{
	store_find(s, &store_sandboxes, id, found, arg);
}

void store_get_ended_sandbox(
	struct store *s, const char *id, const char *tenant, store_found_fn *found, void *arg)
{
	struct operation *op = operation_new(store_sql(s, &store_sandboxes, sql_get_ended));
	operation_add_text(op, id);
	operation_add_text(op, tenant);
	store_search(s, &store_sandboxes, op, found, arg);
}

/* ---- many that have ended ---- */

struct listing {
	void (*found)(void *arg, const struct sandbox_record *row, int64_t total);
	void *arg;
	int64_t total;
	int error;
};

static void ended_counted(struct operation *op, const struct value *columns, size_t count)
{
	struct listing *l = op->arg;
	(void)count;
	if (columns)
		l->total = columns[0].number;
	else if (op->error)
		l->error = op->error;
}

static void ended_listed(struct operation *op, const struct value *columns, size_t count)
{
	struct listing *l = op->arg;
	struct sandbox_record row;
	(void)count;
	if (columns)
		store_read(&store_sandboxes, columns, &row);
	if (op->error)
		l->error = op->error;
	l->found(l->arg, columns ? &row : NULL, l->error ? l->error : l->total);
	if (!columns)
		free(l);
}

#define ENDED_PARAMETERS 12

static struct operation *ended_operation(const char *sql, const struct ended_query *q)
{
	const char *const texts[] = {q->tenant, q->status, q->name, q->project, q->snapshot};
	struct operation *op = operation_with(sql, ENDED_PARAMETERS);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		operation_add_text(op, texts[i]);
	operation_add_int(op, q->ephemeral);
	return op;
}

static bool ended_is_filtered(const struct ended_query *q)
{
	return q->name[0] || q->project[0] || q->snapshot[0] || q->ephemeral >= 0;
}

/* Rows of one status that are sorted by status are in the order of creation. */
static bool ended_is_by_creation(const struct ended_query *q)
{
	return q->order == ENDED_BY_CREATION || q->order == ENDED_BY_STATUS;
}

static const char *ended_list_text(const struct ended_query *q)
{
	static const char *const texts[2][2] = {{sql_ended_forwards, sql_ended_backwards},
		{sql_named_forwards, sql_named_backwards}};
	if (!ended_is_by_creation(q))
		return sql_ended_sorted;
	return texts[q->name[0] != '\0'][q->backwards];
}

static void ended_count(struct store *s, const struct ended_query *q, struct listing *l)
{
	struct operation *op;
	if (ended_is_filtered(q)) {
		op = ended_operation(sql_count_filtered, q);
	} else {
		op = operation_new(sql_count_ended);
		operation_add_text(op, q->tenant);
		operation_add_text(op, q->status);
	}
	op->row = ended_counted;
	store_submit_read(s, op, l);
}

void store_list_ended_sandboxes(struct store *s, const struct ended_query *q,
	void (*found)(void *arg, const struct sandbox_record *row, int64_t total), void *arg)
{
	struct listing *l = mem_new(sizeof *l);
	*l = (struct listing){.found = found, .arg = arg};
	if (q->counts)
		ended_count(s, q, l);
	struct operation *listing =
		ended_operation(store_sql(s, &store_sandboxes, ended_list_text(q)), q);
	bool by_creation = ended_is_by_creation(q);
	bool from_end = by_creation && q->backwards && !q->after_id[0];
	operation_add_int(listing, from_end ? INT64_MAX : q->after_ms);
	operation_add_text(listing, q->after_id);
	operation_add_int(listing, q->limit);
	operation_add_int(listing, q->offset);
	if (!by_creation) {
		operation_add_int(listing, q->order);
		operation_add_int(listing, q->backwards);
	}
	listing->row = ended_listed;
	store_submit_read(s, listing, l);
}

void store_expire_sandboxes(
	struct store *s, int64_t before_ms, unsigned limit, store_expired_fn *each, void *arg)
{
	store_expire(s, sql_expire, before_ms, limit, each, arg);
}
