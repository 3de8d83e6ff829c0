/* Executions: a short row while somebody knows that they run, one with their output at the end. */
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "store/internal.h"

#define AT(KIND, member) FIELD_AT(KIND, struct execution_row, member)

/*
 * The first rows describe a running execution: the table of processes has just these. The output
 * comes last: lists leave it out.
 */
#define PROCESS_ROWS 11
#define OUTPUT_ROWS  2
static const struct field execution_fields[] = {
	{AT(TEXT, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, sandbox), .column = "sandbox"},
	{AT(TEXT, tenant), .column = "tenant"},
	{AT(TEXT, name), .column = "name"},
	{AT(TEXT, user), .column = "user"},
	{AT(TEXT, cwd), .column = "cwd"},
	{AT(TIME, started_ms), .column = "started_ms"},
	{AT(INTEGER, kind), .column = "kind"},
	{AT(BOOL, terminal), .column = "terminal"},
	{AT(INTEGER, pid), .column = "pid"},
	{AT(LIST, command), .column = "command"},
	{AT(TEXT, status), .column = "status"},
	{AT(INTEGER, exit_code), .column = "exit_code"},
	{AT(INTEGER, signal), .column = "signal"},
	{AT(BOOL, timed_out), .column = "timed_out"},
	{AT(BOOL, oom_killed), .column = "oom_killed"},
	{AT(INTEGER, duration_us), .column = "duration_us"},
	{AT(INTEGER, length[0]), .column = "out_length"},
	{AT(INTEGER, length[1]), .column = "err_length"},
	{AT(INTEGER, stored[0]), .column = "out_stored"},
	{AT(INTEGER, stored[1]), .column = "err_stored"},
	{AT(BOOL, spooled[0]), .column = "out_spooled"},
	{AT(BOOL, spooled[1]), .column = "err_spooled"},
	{AT(INTEGER, cpu_us), .column = "cpu_us"},
	{AT(INTEGER, peak), .column = "peak"},
	{AT(INTEGER, kept), .column = "kept"},
	{AT(LIST, data[0]), .column = "out_data"},
	{AT(LIST, data[1]), .column = "err_data"},
};

static const struct field_table process_table = {
	execution_fields, PROCESS_ROWS, sizeof(struct execution_row)};
static const struct field_table execution_table = {
	execution_fields, ARRAY_LEN(execution_fields), sizeof(struct execution_row)};
static const struct field_table fact_table = {
	execution_fields, ARRAY_LEN(execution_fields) - OUTPUT_ROWS, sizeof(struct execution_row)};

const struct store_table store_processes = {"processes", &process_table, "started_ms, id"};
const struct store_table store_executions = {
	"executions", &execution_table, "started_ms DESC, id DESC"};
static const struct store_table execution_facts = {
	"executions", &fact_table, "started_ms DESC, id DESC"};

#define NEWEST_FIRST                                                                               \
	" AND (?2 >> kind) & 1 AND (started_ms, id) < (?3, ?4) ORDER BY $order LIMIT ?5"

static const char sql_get_any[] = "SELECT $columns FROM $name WHERE id = ?";
static const char sql_get[] = "SELECT $columns FROM $name WHERE id = ? AND tenant = ?";
/* Each by an index: a tenant may have had a million in the last day, and so may a sandbox. */
static const char sql_get_named[] =
	"SELECT $columns FROM $name WHERE +tenant = ?2 AND id ="
	" coalesce((SELECT id FROM executions WHERE id = ?1 AND +sandbox = ?3),"
	" (SELECT id FROM executions WHERE sandbox = ?3 AND name = ?1 AND name <> ''"
	" ORDER BY $order LIMIT 1))";
static const char sql_list[] = "SELECT $columns FROM $name WHERE tenant = ?1" NEWEST_FIRST;
static const char sql_list_sandbox[] =
	"SELECT $columns FROM $name WHERE +tenant = ?1 AND sandbox = ?6" NEWEST_FIRST;
static const char sql_know[] =
	"SELECT id FROM executions WHERE id = ?1 UNION ALL SELECT id FROM processes WHERE id = ?1";
#define GONE " RETURNING id, tenant, kept"
static const char sql_expire[] =
	"DELETE FROM executions WHERE id IN (SELECT id FROM executions"
	" WHERE started_ms + duration_us / 1000 < ?1 ORDER BY started_ms + duration_us / 1000"
	" LIMIT ?2)" GONE;
/* Rows are numbered in the order in which executions end, so the smallest are the oldest. */
static const char sql_evict[] =
	"DELETE FROM executions WHERE rowid IN (SELECT number FROM (SELECT number,"
	" sum(kept) OVER (ORDER BY number) - kept AS before FROM (SELECT rowid AS number, kept"
	" FROM executions WHERE tenant = ? ORDER BY rowid LIMIT ?)) WHERE before < ?)" GONE;
static const char sql_kept[] = "SELECT tenant, bytes FROM kept";
static const char sql_end_begun[] =
	"INSERT INTO executions (id, sandbox, tenant, name, user, cwd, started_ms, kind, terminal,"
	" pid, command, status, exit_code, signal, timed_out, oom_killed, duration_us, out_length,"
	" err_length, out_stored, err_stored, out_spooled, err_spooled, cpu_us, peak, kept,"
	" out_data, err_data) SELECT id, sandbox, tenant, name, user, cwd, started_ms, kind, terminal, pid,"
	" command, ?2, 137, 9, 0, 0, max(0, ?3 - started_ms) * 1000, 0, 0, 0, 0, 0, 0, 0, 0,"
	" 1024 + length(command), x'', x'' FROM processes WHERE sandbox = ?1 ON CONFLICT DO NOTHING";

/* ---- while they run ---- */

void store_begin_execution(struct store *s, const struct execution_row *row)
{
	store_add(s, &store_processes, row, NULL, NULL);
}

void store_end_begun(struct store *s, const char *sandbox, const char *status, int64_t now_ms)
{
	struct operation *op = operation_new(sql_end_begun);
	operation_add_text(op, sandbox);
	operation_add_text(op, status);
	operation_add_int(op, now_ms);
	store_submit(s, op, NULL, NULL);
}

int store_each_begun(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_processes, NULL, each, arg);
}

/* ---- when they have ended ---- */

void store_put_execution(
	struct store *s, const struct execution_row *row, store_added_fn *stored, void *arg)
{
	store_add(s, &store_executions, row, stored, arg);
}

void store_get_execution(struct store *s, const char *id, const char *tenant, const char *sandbox,
	store_found_fn *found, void *arg)
{
	const char *text = !tenant ? sql_get_any : sandbox ? sql_get_named : sql_get;
	struct operation *op = operation_new(store_sql(s, &store_executions, text));
	operation_add_text(op, id);
	if (tenant)
		operation_add_text(op, tenant);
	if (tenant && sandbox)
		operation_add_text(op, sandbox);
	store_search(s, &store_executions, op, found, arg);
}

void store_list_executions(
	struct store *s, const struct execution_query *query, store_found_fn *each, void *arg)
{
	bool one = query->sandbox[0] != '\0';
	struct operation *op =
		operation_new(store_sql(s, &execution_facts, one ? sql_list_sandbox : sql_list));
	operation_add_text(op, query->tenant);
	operation_add_int(op, query->kinds);
	operation_add_int(op, query->before_ms);
	operation_add_text(op, query->before_id);
	operation_add_int(op, query->limit);
	if (one)
		operation_add_text(op, query->sandbox);
	store_list(s, &execution_facts, op, each, arg);
}

/* ---- what goes ---- */

struct departure {
	store_found_fn *each;
	void *arg;
};

static void execution_departed(struct operation *op, const struct value *columns, size_t count)
{
	struct departure *d = op->arg;
	(void)count;
	if (columns) {
		const struct execution_gone gone = {
			columns[0].bytes, columns[1].bytes, columns[2].number};
		d->each(d->arg, &gone, 0);
		return;
	}
	d->each(d->arg, NULL, op->error);
	free(d);
}

static void executions_depart(
	struct store *s, struct operation *op, store_found_fn *each, void *arg)
{
	struct departure d = {each, arg};
	op->row = execution_departed;
	op->makes_room = true;
	store_submit(s, op, NULL, mem_copy(&d, sizeof d));
}

void store_expire_executions(
	struct store *s, int64_t before_ms, unsigned limit, store_found_fn *each, void *arg)
{
	struct operation *op = operation_new(sql_expire);
	operation_add_int(op, before_ms);
	operation_add_int(op, limit);
	executions_depart(s, op, each, arg);
}

void store_evict_executions(struct store *s, const char *tenant, unsigned limit, int64_t bytes,
	store_found_fn *each, void *arg)
{
	struct operation *op = operation_new(sql_evict);
	operation_add_text(op, tenant);
	operation_add_int(op, limit);
	operation_add_int(op, bytes);
	executions_depart(s, op, each, arg);
}

static void execution_known(struct operation *op, const struct value *columns, size_t count)
{
	struct departure *d = op->arg;
	(void)count;
	d->each(d->arg, columns, op->error);
	if (!columns)
		free(d);
}

void store_know_execution(struct store *s, const char *id, store_found_fn *found, void *arg)
{
	struct departure d = {found, arg};
	struct operation *op = operation_with(sql_know, 1);
	operation_add_text(op, id);
	op->row = execution_known;
	store_submit_read(s, op, mem_copy(&d, sizeof d));
}

struct sums {
	void (*each)(void *arg, const char *tenant, int64_t bytes);
	void *arg;
};

static void sum_read(void *arg, const struct value *columns, size_t count)
{
	const struct sums *sums = arg;
	(void)count;
	sums->each(sums->arg, columns[0].bytes, columns[1].number);
}

int store_each_kept(
	struct store *s, void (*each)(void *arg, const char *tenant, int64_t bytes), void *arg)
{
	struct sums sums = {each, arg};
	return s->backend->run(s->connection, sql_kept, NULL, 0, sum_read, &sums);
}
