#include "store/volumes.h"

#include "base/cleanup.h"
#include "store/internal.h"

static const char sql_put[] =
	"INSERT OR REPLACE INTO volumes (id, tenant, name, size, created_ms) VALUES (?,?,?,?,?)";
static const char sql_delete[] = "DELETE FROM volumes WHERE id = ?";
static const char sql_all[] =
	"SELECT id, tenant, name, size, created_ms FROM volumes ORDER BY created_ms, id";

void store_put_volume(struct store *s, const struct volume_row *row, store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(sql_put);
	operation_add_text(op, row->id);
	operation_add_text(op, row->tenant);
	operation_add_text(op, row->name);
	operation_add_int(op, row->limit);
	operation_add_int(op, row->created_ms);
	store_submit(s, op, done, arg);
}

void store_delete_volume(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(sql_delete);
	operation_add_text(op, id);
	store_submit(s, op, done, arg);
}

int store_each_volume(
	struct store *s, void (*each)(void *arg, const struct volume_row *row), void *arg)
{
	sqlite3_stmt *st;
	int r;
	if (sqlite3_prepare_v2(s->db, sql_all, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW)
		each(arg, &(struct volume_row){store_text_at(st, 0), store_text_at(st, 1),
				  store_text_at(st, 2), sqlite3_column_int64(st, 3),
				  sqlite3_column_int64(st, 4)});
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : -1;
}
