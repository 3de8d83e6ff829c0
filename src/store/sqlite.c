/*
 * SQLite as a back end. WAL with synchronous=NORMAL: a commit survives the death of any of our
 * processes at once, and a power cut once the next checkpoint was written.
 *
 * A connection that reads has its own view of the database: it blocks no writer, and none blocks
 * it.
 *
 * What SQLite would put into a temporary file (the journal of a statement, a sort, an index made
 * for one query) stays in memory: the front may not make files where SQLite would look for a place.
 */
#include "store/sqlite.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define STATEMENTS_MAX 128

struct connection {
	sqlite3 *db;
	struct {
		const char *sql;
		sqlite3_stmt *statement;
	} prepared[STATEMENTS_MAX];
};

/* -ENOSPC tells a full disk from everything else that the database refuses. */
static int sqlite_error(struct connection *c)
{
	int code = sqlite3_errcode(c->db) & 0xff;
	int cause = sqlite3_system_errno(c->db);
	bool full = code == SQLITE_FULL ||
		    (code == SQLITE_IOERR && (cause == ENOSPC || cause == EDQUOT));
	return full ? -ENOSPC : -EIO;
}

static const char setup_writing[] =
	"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=5000;"
	"PRAGMA cache_size=-1024; PRAGMA temp_store=MEMORY; SELECT count(*) FROM sqlite_schema";
static const char setup_reading[] =
	"PRAGMA busy_timeout=5000; PRAGMA cache_size=-1024; PRAGMA temp_store=MEMORY";

static int sqlite_open(struct connection **ret, const char *where, bool writes, struct error *e)
{
	int mode = writes ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
	struct connection *c = calloc(1, sizeof *c);
	if (!c)
		return error_set(e, ERROR_INTERNAL, "out of memory");
	/* One thread at a time: the loop's at start, then the queue's. */
	if (sqlite3_open_v2(where, &c->db, mode | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK &&
		sqlite3_exec(c->db, writes ? setup_writing : setup_reading, NULL, NULL, NULL) ==
			SQLITE_OK) {
		*ret = c;
		return 0;
	}
	int error = sqlite_error(c);
	error_set(
		e, ERROR_INTERNAL, "cannot open the database %s: %s", where, sqlite3_errmsg(c->db));
	sqlite3_close(c->db);
	free(c);
	return error;
}

static void sqlite_close(struct connection *c)
{
	for (size_t i = 0; i < STATEMENTS_MAX; i++)
		sqlite3_finalize(c->prepared[i].statement);
	sqlite3_close(c->db);
	free(c);
}

static sqlite3_stmt *sqlite_prepare(struct connection *c, const char *sql)
{
	size_t i = 0;
	for (; i < STATEMENTS_MAX && c->prepared[i].sql; i++)
		if (c->prepared[i].sql == sql)
			return c->prepared[i].statement;
	sqlite3_stmt *statement = NULL;
	if (i == STATEMENTS_MAX || sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
					   &statement, NULL) != SQLITE_OK)
		return NULL;
	c->prepared[i].sql = sql;
	c->prepared[i].statement = statement;
	return statement;
}

static void sqlite_bind(sqlite3_stmt *st, const struct value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct value *v = &values[i];
		int at = (int)i + 1;
		if (v->kind == STORED_NUMBER)
			sqlite3_bind_int64(st, at, v->number);
		else if (v->kind == STORED_TEXT)
			sqlite3_bind_text(st, at, v->bytes, (int)v->len, SQLITE_STATIC);
		else
			sqlite3_bind_blob(st, at, v->bytes, (int)v->len, SQLITE_STATIC);
	}
}

static size_t sqlite_columns(sqlite3_stmt *st, struct value *columns)
{
	int count = sqlite3_column_count(st);
	for (int i = 0; i < count && i < BACKEND_COLUMNS_MAX; i++) {
		int type = sqlite3_column_type(st, i);
		if (type == SQLITE_INTEGER) {
			columns[i] =
				(struct value){STORED_NUMBER, sqlite3_column_int64(st, i), NULL, 0};
			continue;
		}
		const void *bytes = type == SQLITE_TEXT ? (const void *)sqlite3_column_text(st, i)
							: sqlite3_column_blob(st, i);
		columns[i] = (struct value){type == SQLITE_TEXT ? STORED_TEXT : STORED_BYTES, 0,
			(char *)(uintptr_t)(bytes ? bytes : ""),
			(size_t)sqlite3_column_bytes(st, i)};
	}
	return (size_t)count;
}

static int sqlite_run(struct connection *c, const char *sql, const struct value *values,
	size_t count, backend_row_fn *row, void *arg)
{
	struct value columns[BACKEND_COLUMNS_MAX];
	sqlite3_stmt *st = sqlite_prepare(c, sql);
	if (!st || sqlite3_column_count(st) > BACKEND_COLUMNS_MAX)
		return -EIO;
	sqlite_bind(st, values, count);
	int r;
	while ((r = sqlite3_step(st)) == SQLITE_ROW)
		if (row)
			row(arg, columns, sqlite_columns(st, columns));
	r = r == SQLITE_DONE ? 0 : sqlite_error(c);
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return r;
}

static int sqlite_script(struct connection *c, const char *sql)
{
	return sqlite3_exec(c->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : sqlite_error(c);
}

static const char *sqlite_message(struct connection *c)
{
	return sqlite3_errmsg(c->db);
}

sqlite3 *sqlite_handle(struct connection *c)
{
	return c->db;
}

const struct backend backend_sqlite = {
	.name = "sqlite",
	.types = {"INTEGER", "TEXT", "BLOB"},
	.empty = {"0", "''", "x''"},
	.begin = "BEGIN IMMEDIATE",
	.column_list = "SELECT name FROM pragma_table_info(?1)",
	.open = sqlite_open,
	.close = sqlite_close,
	.run = sqlite_run,
	.script = sqlite_script,
	.message = sqlite_message,
};
