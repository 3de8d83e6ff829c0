/* The rows of code contexts; the end of a sandbox takes its own along. */
#include "store/internal.h"

static const char sql_put[] =
	"INSERT INTO contexts (id, sandbox, language, cwd, is_default, created_ms)"
	" VALUES (?,?,?,?,?,?) ON CONFLICT (id) DO NOTHING";
static const char sql_delete[] = "DELETE FROM contexts WHERE id = ?";
static const char sql_all[] =
	"SELECT id, sandbox, language, cwd, is_default, created_ms FROM contexts"
	" ORDER BY created_ms, id";

void store_put_context(
	struct store *s, const struct context_row *row, store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(sql_put);
	operation_add_text(op, row->id);
	operation_add_text(op, row->sandbox);
	operation_add_text(op, row->language);
	operation_add_text(op, row->cwd);
	operation_add_int(op, row->is_default);
	operation_add_int(op, row->created_ms);
	store_submit(s, op, done, arg);
}

void store_delete_context(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(sql_delete);
	operation_add_text(op, id);
	store_submit(s, op, done, arg);
}

int store_each_context(
	struct store *s, void (*each)(void *arg, const struct context_row *row), void *arg)
{
	sqlite3_stmt *st;
	int r;
	if (sqlite3_prepare_v2(s->db, sql_all, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW) {
		struct context_row row = {
			.id = store_text_at(st, 0),
			.sandbox = store_text_at(st, 1),
			.language = store_text_at(st, 2),
			.cwd = store_text_at(st, 3),
			.is_default = sqlite3_column_int64(st, 4),
			.created_ms = sqlite3_column_int64(st, 5),
		};
		each(arg, &row);
	}
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : -1;
}
