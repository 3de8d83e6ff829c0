#include "store/snapshots.h"

#include "base/cleanup.h"
#include "store/internal.h"

#define SNAPSHOT_COLUMNS                                                                           \
	"id, tenant, name, tag, description, parent, sandbox, template, build, root, "             \
	"created_ms, bytes, files, deleted, metadata, env"

static const char sql_put_checkpoint[] =
	"INSERT OR REPLACE INTO checkpoints (id, sandbox, name, parent, created_ms)"
	" VALUES (?,?,?,?,?)";
static const char sql_delete_checkpoint[] = "DELETE FROM checkpoints WHERE id = ?";
static const char sql_delete_checkpoints[] = "DELETE FROM checkpoints WHERE sandbox = ?";
static const char sql_all_checkpoints[] =
	"SELECT id, sandbox, name, parent, created_ms FROM checkpoints ORDER BY created_ms, id";
static const char sql_put_snapshot[] = "INSERT OR REPLACE INTO snapshots (" SNAPSHOT_COLUMNS
				       ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
static const char sql_delete_snapshot[] = "DELETE FROM snapshots WHERE id = ?";
static const char sql_all_snapshots[] =
	"SELECT " SNAPSHOT_COLUMNS " FROM snapshots ORDER BY created_ms, id";

void store_put_checkpoint(
	struct store *s, const struct checkpoint_row *row, store_done_fn *done, void *arg)
{
	const char *const texts[] = {row->id, row->sandbox, row->name, row->parent};
	struct operation *op = operation_new(sql_put_checkpoint);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		operation_add_text(op, texts[i]);
	operation_add_int(op, row->created_ms);
	store_submit(s, op, done, arg);
}

static void run_with_id(
	struct store *s, const char *sql, const char *id, store_done_fn *done, void *arg)
{
	struct operation *op = operation_new(sql);
	operation_add_text(op, id);
	store_submit(s, op, done, arg);
}

void store_delete_checkpoint(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	run_with_id(s, sql_delete_checkpoint, id, done, arg);
}

void store_delete_checkpoints(struct store *s, const char *sandbox)
{
	run_with_id(s, sql_delete_checkpoints, sandbox, NULL, NULL);
}

int store_each_checkpoint(
	struct store *s, void (*each)(void *arg, const struct checkpoint_row *row), void *arg)
{
	sqlite3_stmt *st;
	int r;
	if (sqlite3_prepare_v2(s->db, sql_all_checkpoints, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW)
		each(arg, &(struct checkpoint_row){store_text_at(st, 0), store_text_at(st, 1),
				  store_text_at(st, 2), store_text_at(st, 3),
				  sqlite3_column_int64(st, 4)});
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : -1;
}

void store_put_snapshot(
	struct store *s, const struct snapshot_row *row, store_done_fn *done, void *arg)
{
	const char *const texts[] = {row->id, row->tenant, row->name, row->tag, row->description,
		row->parent, row->sandbox, row->template_name, row->build, row->root};
	const int64_t numbers[] = {row->created_ms, row->bytes, row->files, row->deleted};
	struct operation *op = operation_new(sql_put_snapshot);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		operation_add_text(op, texts[i]);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		operation_add_int(op, numbers[i]);
	operation_add_text(op, row->metadata);
	operation_add_blob(op, row->env, row->env_len);
	store_submit(s, op, done, arg);
}

void store_delete_snapshot(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	run_with_id(s, sql_delete_snapshot, id, done, arg);
}

int store_each_snapshot(
	struct store *s, void (*each)(void *arg, const struct snapshot_row *row), void *arg)
{
	sqlite3_stmt *st;
	int r;
	if (sqlite3_prepare_v2(s->db, sql_all_snapshots, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW)
		each(arg, &(struct snapshot_row){
				  .id = store_text_at(st, 0),
				  .tenant = store_text_at(st, 1),
				  .name = store_text_at(st, 2),
				  .tag = store_text_at(st, 3),
				  .description = store_text_at(st, 4),
				  .parent = store_text_at(st, 5),
				  .sandbox = store_text_at(st, 6),
				  .template_name = store_text_at(st, 7),
				  .build = store_text_at(st, 8),
				  .root = store_text_at(st, 9),
				  .created_ms = sqlite3_column_int64(st, 10),
				  .bytes = sqlite3_column_int64(st, 11),
				  .files = sqlite3_column_int64(st, 12),
				  .deleted = sqlite3_column_int(st, 13),
				  .metadata = store_text_at(st, 14),
				  .env = sqlite3_column_blob(st, 15),
				  .env_len = (size_t)sqlite3_column_bytes(st, 15),
			  });
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : -1;
}
