#include "store/snapshots.h"

#include "base/cleanup.h"
#include "store/internal.h"

#define AT(KIND, member) FIELD_AT(KIND, struct checkpoint_row, member)

static const struct field checkpoint_fields[] = {
	{AT(TEXT, id), .flags = FIELD_KEY, .column = "id"},
	{AT(TEXT, sandbox), .column = "sandbox"},
	{AT(TEXT, name), .column = "name"},
	{AT(TEXT, parent), .column = "parent"},
	{AT(TIME, created_ms), .column = "created_ms"},
};

static const struct field_table checkpoint_table = {
	checkpoint_fields, ARRAY_LEN(checkpoint_fields), sizeof(struct checkpoint_row)};
const struct store_table store_checkpoints = {"checkpoints", &checkpoint_table, "created_ms, id"};

const struct store_table store_snapshots = {"snapshots", &snapshot_model, "created_ms, id"};

static const char sql_delete_checkpoints[] = "DELETE FROM checkpoints WHERE sandbox = ?";

void store_put_checkpoint(
	struct store *s, const struct checkpoint_row *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_checkpoints, row, done, arg);
}

void store_delete_checkpoint(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_checkpoints, id, done, arg);
}

void store_delete_checkpoints(struct store *s, const char *sandbox)
{
	struct operation *op = operation_new(sql_delete_checkpoints);
	operation_add_text(op, sandbox);
	op->makes_room = true;
	store_submit(s, op, NULL, NULL);
}

int store_each_checkpoint(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_checkpoints, NULL, each, arg);
}

void store_put_snapshot(
	struct store *s, const struct snapshot_record *row, store_done_fn *done, void *arg)
{
	store_put(s, &store_snapshots, row, done, arg);
}

void store_delete_snapshot(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_delete(s, &store_snapshots, id, done, arg);
}

int store_each_snapshot(struct store *s, void (*each)(void *arg, const void *row), void *arg)
{
	return store_each(s, &store_snapshots, NULL, each, arg);
}
