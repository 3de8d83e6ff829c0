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
/* The first parameters of both are the same, so that one function binds them. */
#define ENDED                                                                                      \
	" FROM sandboxes WHERE tenant = ?1 AND ended_ms > 0 AND (?2 = '' OR status = ?2)"          \
	" AND (?3 = '' OR name = ?3) AND (?4 = '' OR project = ?4)"                                \
	" AND (?5 = '' OR snapshot = ?5) AND (?6 < 0 OR ephemeral = ?6)"                           \
	" AND (created_ms, id) > (?7, ?8)"
#define ENDED_KEY                                                                                  \
	"CASE ?9 WHEN 0 THEN created_ms WHEN 1 THEN ended_ms WHEN 2 THEN name"                     \
	" WHEN 3 THEN status WHEN 4 THEN ephemeral ELSE executions END"
static const char sql_count_ended[] = "SELECT count(*)" ENDED;
static const char sql_list_ended[] =
	"SELECT $columns" ENDED " ORDER BY iif(?10, NULL, " ENDED_KEY "), iif(?10, " ENDED_KEY
	", NULL) DESC, iif(?10, -created_ms, created_ms), id LIMIT ?11 OFFSET ?12";
static const char sql_expire[] = "DELETE FROM sandboxes WHERE ended_ms > 0 AND ended_ms < ?";

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

struct search {
	void (*found)(void *arg, const struct sandbox_record *row);
	void *arg;
};

/* One row, or the closing NULL when there was none. */
static void store_sandboxes_ended_found(
	struct operation *op, const struct value *columns, size_t count)
{
	struct search *search = op->arg;
	struct sandbox_record row;
	(void)count;
	if (columns) {
		store_read(&store_sandboxes, columns, &row);
		search->found(search->arg, &row);
		search->found = NULL;
		return;
	}
	if (search->found)
		search->found(search->arg, NULL);
	free(search);
}

void store_get_ended_sandbox(struct store *s, const char *id, const char *tenant,
	void (*found)(void *arg, const struct sandbox_record *row), void *arg)
{
	struct search *search = mem_new(sizeof *search);
	*search = (struct search){found, arg};
	struct operation *op = operation_new(store_sql(s, &store_sandboxes, sql_get_ended));
	operation_add_text(op, id);
	operation_add_text(op, tenant);
	op->row = store_sandboxes_ended_found;
	store_submit(s, op, NULL, search);
}

/* ---- many that have ended ---- */

struct listing {
	void (*found)(void *arg, const struct sandbox_record *row, int64_t total);
	void *arg;
	int64_t total;
};

static void ended_counted(struct operation *op, const struct value *columns, size_t count)
{
	struct listing *l = op->arg;
	(void)count;
	if (columns)
		l->total = columns[0].number;
}

static void ended_listed(struct operation *op, const struct value *columns, size_t count)
{
	struct listing *l = op->arg;
	struct sandbox_record row;
	(void)count;
	if (columns)
		store_read(&store_sandboxes, columns, &row);
	l->found(l->arg, columns ? &row : NULL, l->total);
	if (!columns)
		free(l);
}

static struct operation *ended_operation(const char *sql, const struct ended_query *q)
{
	const char *const texts[] = {q->tenant, q->status, q->name, q->project, q->snapshot};
	struct operation *op = operation_new(sql);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		operation_add_text(op, texts[i]);
	operation_add_int(op, q->ephemeral);
	operation_add_int(op, q->after_ms);
	operation_add_text(op, q->after_id);
	return op;
}

void store_list_ended_sandboxes(struct store *s, const struct ended_query *q,
	void (*found)(void *arg, const struct sandbox_record *row, int64_t total), void *arg)
{
	struct listing *l = mem_new(sizeof *l);
	*l = (struct listing){.found = found, .arg = arg};
	struct operation *counting = ended_operation(sql_count_ended, q);
	counting->row = ended_counted;
	store_submit(s, counting, NULL, l);
	struct operation *listing =
		ended_operation(store_sql(s, &store_sandboxes, sql_list_ended), q);
	operation_add_int(listing, q->order);
	operation_add_int(listing, q->backwards);
	operation_add_int(listing, q->limit);
	operation_add_int(listing, q->offset);
	listing->row = ended_listed;
	store_submit(s, listing, NULL, l);
}

void store_expire_sandboxes(struct store *s, int64_t before_ms)
{
	struct operation *op = operation_new(sql_expire);
	operation_add_int(op, before_ms);
	store_submit(s, op, NULL, NULL);
}
