/* Executions: a short row while somebody knows that they run, one with their output at the end. */
#include <string.h>

#include "base/cleanup.h"
#include "store/internal.h"

#define FACTS                                                                                      \
	"id, sandbox, tenant, status, name, user, cwd, exit_code, signal, timed_out, oom_killed, " \
	"started_ms, duration_us, out_length, err_length, out_stored, err_stored, out_spooled, "   \
	"err_spooled, kind, terminal, pid, cpu_us, peak"
#define NEWEST_FIRST                                                                               \
	" AND (?2 >> kind) & 1 AND (started_ms, id) < (?3, ?4)"                                    \
	" ORDER BY started_ms DESC, id DESC LIMIT ?5"

/* One that was committed, but not yet forgotten by its init, comes a second time after a crash. */
static const char sql_put[] =
	"INSERT OR IGNORE INTO executions (" FACTS ", command, out_data, err_data) VALUES "
	"(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) RETURNING 1";
static const char sql_get_any[] =
	"SELECT " FACTS ", command, out_data, err_data FROM executions WHERE id = ?";
static const char sql_get[] =
	"SELECT " FACTS ", command, out_data, err_data FROM executions WHERE id = ? AND tenant = ?";
/* Each by an index: a tenant may have had a million in the last day, and so may a sandbox. */
static const char sql_get_named[] =
	"SELECT " FACTS ", command, out_data, err_data FROM executions WHERE +tenant = ?2 AND id ="
	" coalesce((SELECT id FROM executions WHERE id = ?1 AND +sandbox = ?3),"
	" (SELECT id FROM executions WHERE sandbox = ?3 AND name = ?1 AND name <> ''"
	" ORDER BY started_ms DESC, id DESC LIMIT 1))";
static const char sql_list[] =
	"SELECT " FACTS ", command, x'', x'' FROM executions WHERE tenant = ?1" NEWEST_FIRST;
static const char sql_list_sandbox[] = "SELECT " FACTS ", command, x'', x'' FROM executions"
				       " WHERE +tenant = ?1 AND sandbox = ?6" NEWEST_FIRST;
static const char sql_expire[] =
	"DELETE FROM executions WHERE started_ms + duration_us / 1000 < ? RETURNING id";

static const char sql_begin[] =
	"INSERT OR IGNORE INTO processes (id, sandbox, tenant, name, user, cwd, started_ms, kind,"
	" terminal, pid, command) VALUES (?,?,?,?,?,?,?,?,?,?,?)";
static const char sql_end_begun[] =
	"INSERT OR IGNORE INTO executions (" FACTS ", command, out_data, err_data)"
	" SELECT id, sandbox, tenant, ?2, name, user, cwd, 137, 9, 0, 0, started_ms,"
	" max(0, ?3 - started_ms) * 1000, 0, 0, 0, 0, 0, 0, kind, terminal, pid, 0, 0, command,"
	" x'', x'' FROM processes WHERE sandbox = ?1";
static const char sql_begun[] =
	"SELECT id, sandbox, tenant, name, user, cwd, started_ms, kind, terminal, pid, command"
	" FROM processes";

/* ---- while they run ---- */

void store_begin_execution(struct store *s, const struct execution_row *row)
{
	const char *const texts[] = {
		row->id, row->sandbox, row->tenant, row->name, row->user, row->cwd};
	const int64_t numbers[] = {row->started_ms, row->kind, row->terminal, row->pid};
	struct operation *op = operation_new(sql_begin);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		operation_add_text(op, texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		operation_add_int(op, numbers[i]);
	operation_add_blob(op, row->command, row->command_len);
	store_submit(s, op, NULL, NULL);
}

void store_end_begun(struct store *s, const char *sandbox, const char *status, int64_t now_ms)
{
	struct operation *op = operation_new(sql_end_begun);
	operation_add_text(op, sandbox);
	operation_add_text(op, status);
	operation_add_int(op, now_ms);
	store_submit(s, op, NULL, NULL);
}

int store_each_begun(
	struct store *s, void (*each)(void *arg, const struct execution_row *row), void *arg)
{
	sqlite3_stmt *st;
	int r;
	if (sqlite3_prepare_v2(s->db, sql_begun, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		struct execution_row row = {.id = store_text_at(st, 0),
			.sandbox = store_text_at(st, 1),
			.tenant = store_text_at(st, 2),
			.name = store_text_at(st, 3),
			.user = store_text_at(st, 4),
			.cwd = store_text_at(st, 5),
			.started_ms = sqlite3_column_int64(st, 6),
			.kind = sqlite3_column_int64(st, 7),
			.terminal = sqlite3_column_int(st, 8) != 0,
			.pid = sqlite3_column_int64(st, 9),
			.command = sqlite3_column_blob(st, 10),
			.command_len = (size_t)sqlite3_column_bytes(st, 10)};
		each(arg, &row);
	}
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : -1;
}

/* ---- when they have ended ---- */

/* A row comes back for one that is new. */
static void put(struct operation *op, const struct value *columns, size_t count)
{
	(void)count;
	if (columns)
		op->is_new = true;
	else if (op->stored)
		op->stored(op->arg, op->error, op->is_new);
}

void store_put_execution(
	struct store *s, const struct execution_row *row, execution_stored_fn *stored, void *arg)
{
	const char *const texts[] = {
		row->id, row->sandbox, row->tenant, row->status, row->name, row->user, row->cwd};
	const int64_t numbers[] = {row->exit_code, row->signal, row->timed_out, row->oom_killed,
		row->started_ms, row->duration_us, row->length[0], row->length[1], row->stored[0],
		row->stored[1], row->spooled[0], row->spooled[1], row->kind, row->terminal,
		row->pid, row->cpu_us, row->peak};
	struct operation *op = operation_new(sql_put);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		operation_add_text(op, texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		operation_add_int(op, numbers[i]);
	operation_add_blob(op, row->command, row->command_len);
	for (int i = 0; i < 2; i++)
		operation_add_blob(op, row->data[i], row->spooled[i] ? 0 : (size_t)row->stored[i]);
	op->row = put;
	op->stored = stored;
	store_submit(s, op, NULL, arg);
}

static void row_of(const struct value *c, struct execution_row *row)
{
	*row = (struct execution_row){
		.id = c[0].bytes,
		.sandbox = c[1].bytes,
		.tenant = c[2].bytes,
		.status = c[3].bytes,
		.name = c[4].bytes,
		.user = c[5].bytes,
		.cwd = c[6].bytes,
		.exit_code = c[7].number,
		.signal = c[8].number,
		.timed_out = c[9].number != 0,
		.oom_killed = c[10].number != 0,
		.started_ms = c[11].number,
		.duration_us = c[12].number,
		.length = {c[13].number, c[14].number},
		.stored = {c[15].number, c[16].number},
		.spooled = {c[17].number != 0, c[18].number != 0},
		.kind = c[19].number,
		.terminal = c[20].number != 0,
		.pid = c[21].number,
		.cpu_us = c[22].number,
		.peak = c[23].number,
		.command = c[24].bytes,
		.command_len = c[24].len,
		.data = {c[25].bytes, c[26].bytes},
	};
}

/* ---- one ---- */

/* One row, or the closing NULL when there was none. */
static void found(struct operation *op, const struct value *columns, size_t count)
{
	struct execution_row row;
	(void)count;
	if (!op->found)
		return;
	if (columns)
		row_of(columns, &row);
	op->found(op->arg, columns ? &row : NULL);
	op->found = NULL;
}

void store_get_execution(struct store *s, const char *id, const char *tenant, const char *sandbox,
	void (*done)(void *arg, const struct execution_row *row), void *arg)
{
	struct operation *op = operation_new(!tenant   ? sql_get_any
					     : sandbox ? sql_get_named
						       : sql_get);
	operation_add_text(op, id);
	if (tenant)
		operation_add_text(op, tenant);
	if (tenant && sandbox)
		operation_add_text(op, sandbox);
	op->row = found;
	op->found = done;
	store_submit(s, op, NULL, arg);
}

/* ---- many ---- */

static void listed(struct operation *op, const struct value *columns, size_t count)
{
	struct execution_row row;
	(void)count;
	if (columns)
		row_of(columns, &row);
	op->found(op->arg, columns ? &row : NULL);
}

void store_list_executions(struct store *s, const struct execution_query *query,
	void (*each)(void *arg, const struct execution_row *row), void *arg)
{
	bool one = query->sandbox[0] != '\0';
	struct operation *op = operation_new(one ? sql_list_sandbox : sql_list);
	operation_add_text(op, query->tenant);
	operation_add_int(op, query->kinds);
	operation_add_int(op, query->before_ms);
	operation_add_text(op, query->before_id);
	operation_add_int(op, query->limit);
	if (one)
		operation_add_text(op, query->sandbox);
	op->row = listed;
	op->found = each;
	store_submit(s, op, NULL, arg);
}

static void expired(struct operation *op, const struct value *columns, size_t count)
{
	(void)count;
	if (columns)
		op->each(op->arg, columns[0].bytes);
}

void store_expire_executions(
	struct store *s, int64_t before_ms, void (*each)(void *arg, const char *id), void *arg)
{
	struct operation *op = operation_new(sql_expire);
	operation_add_int(op, before_ms);
	op->row = expired;
	op->each = each;
	store_submit(s, op, NULL, arg);
}
