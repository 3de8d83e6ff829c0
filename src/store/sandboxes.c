/*
 * The rows of sandboxes: one for each that is meant to exist, and of those that have ended, until
 * their retention is over.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "store/internal.h"

/* The executions are counted by the store itself, when they end: that column is set only once. */
#define COLUMNS                                                                                                     \
	"id, tenant, name, description, template, user, workdir, project, metadata, failure, "                      \
	"status, boot_id, on_idle, on_lease, ended_by, snapshot, parent, build, root, layer, checkpoint, volumes, " \
	"memory, cpu, pids, open_files, idle_ms, execution_ms, created_ms, startup_us, ephemeral, "                 \
	"auto_resume, lease_ms, lease_end_ms, paused_timeout_ms, paused_ms, ended_ms, cpu_us, "                     \
	"memory_byte_seconds, disk, env, executions"

#define EVENTS ", coalesce((SELECT max(number) FROM events WHERE sandbox = sandboxes.id), 0)"

static const char sql_put[] =
	"INSERT INTO sandboxes (" COLUMNS ") VALUES "
	"(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
	" ON CONFLICT (id) DO UPDATE SET name = excluded.name, description = excluded.description,"
	" metadata = excluded.metadata, failure = excluded.failure, status = excluded.status,"
	" checkpoint = excluded.checkpoint, boot_id = excluded.boot_id, on_idle = excluded.on_idle, on_lease = excluded.on_lease,"
	" idle_ms = excluded.idle_ms, execution_ms = excluded.execution_ms,"
	" startup_us = excluded.startup_us, auto_resume = excluded.auto_resume,"
	" lease_ms = excluded.lease_ms, lease_end_ms = excluded.lease_end_ms,"
	" paused_timeout_ms = excluded.paused_timeout_ms, paused_ms = excluded.paused_ms,"
	" cpu_us = excluded.cpu_us, memory_byte_seconds = excluded.memory_byte_seconds,"
	" env = excluded.env";
static const char sql_end[] =
	"UPDATE sandboxes SET status = ?, ended_by = ?, ended_ms = ? WHERE id = ?";
static const char sql_put_usage[] =
	"UPDATE sandboxes SET cpu_us = ?, memory_byte_seconds = ? WHERE id = ?";
static const char sql_all[] =
	"SELECT " COLUMNS EVENTS " FROM sandboxes WHERE ended_ms = 0 ORDER BY created_ms, id";
static const char sql_get_ended[] =
	"SELECT " COLUMNS EVENTS " FROM sandboxes WHERE id = ? AND tenant = ? AND ended_ms > 0";
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
	"SELECT " COLUMNS EVENTS ENDED " ORDER BY iif(?10, NULL, " ENDED_KEY
	"), iif(?10, " ENDED_KEY
	", NULL) DESC, iif(?10, -created_ms, created_ms), id LIMIT ?11 OFFSET ?12";
static const char sql_expire[] = "DELETE FROM sandboxes WHERE ended_ms > 0 AND ended_ms < ?";

void store_put_sandbox(
	struct store *s, const struct sandbox_row *row, store_done_fn *done, void *arg)
{
	const char *const texts[] = {row->id, row->tenant, row->name, row->description,
		row->template_name, row->user, row->workdir, row->project, row->metadata,
		row->failure, row->status, row->boot_id, row->on_idle, row->on_lease, row->ended_by,
		row->snapshot, row->parent, row->build, row->root, row->layer, row->checkpoint,
		row->volumes};
	const int64_t numbers[] = {row->memory, row->cpu, row->pids, row->open_files, row->idle_ms,
		row->execution_ms, row->created_ms, row->startup_us, row->ephemeral,
		row->auto_resume, row->lease_ms, row->lease_end_ms, row->paused_timeout_ms,
		row->paused_ms, row->ended_ms, row->cpu_us, row->memory_byte_seconds, row->disk};
	struct operation *op = operation_new(sql_put);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		operation_add_text(op, texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		operation_add_int(op, numbers[i]);
	operation_add_blob(op, row->env, row->env_len);
	operation_add_int(op, row->executions);
	store_submit(s, op, done, arg);
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

/* Where the columns go, in their order; both ways of reading use it. */
struct places {
	const char **texts[22];
	int64_t *numbers[18];
};

static struct places places_of(struct sandbox_row *row)
{
	return (struct places){
		.texts = {&row->id, &row->tenant, &row->name, &row->description,
			&row->template_name, &row->user, &row->workdir, &row->project,
			&row->metadata, &row->failure, &row->status, &row->boot_id, &row->on_idle,
			&row->on_lease, &row->ended_by, &row->snapshot, &row->parent, &row->build,
			&row->root, &row->layer, &row->checkpoint, &row->volumes},
		.numbers = {&row->memory, &row->cpu, &row->pids, &row->open_files, &row->idle_ms,
			&row->execution_ms, &row->created_ms, &row->startup_us, &row->ephemeral,
			&row->auto_resume, &row->lease_ms, &row->lease_end_ms,
			&row->paused_timeout_ms, &row->paused_ms, &row->ended_ms, &row->cpu_us,
			&row->memory_byte_seconds, &row->disk},
	};
}

static void read_statement(sqlite3_stmt *st, struct sandbox_row *row)
{
	struct places p = places_of(row);
	int column = 0;
	for (size_t i = 0; i < ARRAY_LEN(p.texts); i++)
		*p.texts[i] = store_text_at(st, column++);
	for (size_t i = 0; i < ARRAY_LEN(p.numbers); i++)
		*p.numbers[i] = sqlite3_column_int64(st, column++);
	row->env = sqlite3_column_blob(st, column);
	row->env_len = (size_t)sqlite3_column_bytes(st, column++);
	row->executions = sqlite3_column_int64(st, column++);
	row->events = sqlite3_column_int64(st, column);
}

int store_each_sandbox(
	struct store *s, void (*each)(void *arg, const struct sandbox_row *row), void *arg)
{
	sqlite3_stmt *st;
	int r;
	if (sqlite3_prepare_v2(s->db, sql_all, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		struct sandbox_row row;
		read_statement(st, &row);
		each(arg, &row);
	}
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : -1;
}

struct search {
	void (*found)(void *arg, const struct sandbox_row *row);
	void *arg;
};

static void read_values(const struct value *v, struct sandbox_row *row)
{
	struct places p = places_of(row);
	for (size_t i = 0; i < ARRAY_LEN(p.texts); i++)
		*p.texts[i] = (v++)->bytes;
	for (size_t i = 0; i < ARRAY_LEN(p.numbers); i++)
		*p.numbers[i] = (v++)->number;
	row->env = v->bytes;
	row->env_len = v->len;
	row->executions = v[1].number;
	row->events = v[2].number;
}

/* One row, or the closing NULL when there was none. */
static void ended_found(struct operation *op, const struct value *columns, size_t count)
{
	struct search *search = op->arg;
	struct sandbox_row row;
	(void)count;
	if (columns) {
		read_values(columns, &row);
		search->found(search->arg, &row);
		search->found = NULL;
		return;
	}
	if (search->found)
		search->found(search->arg, NULL);
	free(search);
}

void store_get_ended_sandbox(struct store *s, const char *id, const char *tenant,
	void (*found)(void *arg, const struct sandbox_row *row), void *arg)
{
	struct search *search = malloc(sizeof *search);
	if (!search)
		abort();
	*search = (struct search){found, arg};
	struct operation *op = operation_new(sql_get_ended);
	operation_add_text(op, id);
	operation_add_text(op, tenant);
	op->row = ended_found;
	store_submit(s, op, NULL, search);
}

/* ---- many that have ended ---- */

struct listing {
	void (*found)(void *arg, const struct sandbox_row *row, int64_t total);
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
	struct sandbox_row row;
	(void)count;
	if (columns)
		read_values(columns, &row);
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
	void (*found)(void *arg, const struct sandbox_row *row, int64_t total), void *arg)
{
	struct listing *l = calloc(1, sizeof *l);
	if (!l)
		abort();
	*l = (struct listing){.found = found, .arg = arg};
	struct operation *counting = ended_operation(sql_count_ended, q);
	counting->row = ended_counted;
	store_submit(s, counting, NULL, l);
	struct operation *listing = ended_operation(sql_list_ended, q);
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
