#include "store/templates.h"

#include <string.h>

#include "base/cleanup.h"
#include "store/internal.h"

static const char sql_put_template[] =
	"INSERT OR REPLACE INTO templates (id, tenant, name, description, created_ms)"
	" VALUES (?,?,?,?,?)";
static const char sql_delete_template[] = "DELETE FROM templates WHERE id = ?";
static const char sql_put_build[] =
	"INSERT OR REPLACE INTO builds (id, template, status, reason, origin, digest, root, layer,"
	" failed_step, created_ms, started_ms, ended_ms, bytes, config, tags)"
	" VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
static const char sql_delete_build[] = "DELETE FROM builds WHERE id = ?";
static const char sql_put_tag[] =
	"INSERT OR REPLACE INTO tags (template, tag, build, created_ms) VALUES (?,?,?,?)";
static const char sql_delete_tag[] = "DELETE FROM tags WHERE template = ? AND tag = ?";
static const char sql_put_layer[] =
	"INSERT OR REPLACE INTO layers (id, tenant, key, root, bytes, created_ms, used_ms)"
	" VALUES (?,?,?,?,?,?,?)";
static const char sql_delete_layer[] = "DELETE FROM layers WHERE id = ?";

static const char sql_all_templates[] =
	"SELECT id, tenant, name, description, created_ms FROM templates";
static const char sql_all_builds[] =
	"SELECT id, template, status, reason, origin, digest, root, layer,"
	" failed_step, created_ms, started_ms, ended_ms, bytes, config, tags"
	" FROM builds ORDER BY created_ms, id";
static const char sql_all_tags[] = "SELECT template, tag, build, created_ms FROM tags";
static const char sql_all_layers[] =
	"SELECT id, tenant, key, root, bytes, created_ms, used_ms FROM layers";

/* An operation with the texts first, then the numbers. */
static struct operation *with_values(const char *sql, const char *const *texts, size_t text_count,
	const int64_t *numbers, size_t number_count)
{
	struct operation *op = operation_new(sql);
	for (size_t i = 0; i < text_count; i++)
		operation_add_text(op, texts[i]);
	for (size_t i = 0; i < number_count; i++)
		operation_add_int(op, numbers[i]);
	return op;
}

void store_put_template(
	struct store *s, const struct template_row *row, store_done_fn *done, void *arg)
{
	const char *const texts[] = {row->id, row->tenant, row->name, row->description};
	store_submit(s, with_values(sql_put_template, texts, ARRAY_LEN(texts), &row->created_ms, 1),
		done, arg);
}

void store_delete_template(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_submit(s, with_values(sql_delete_template, &id, 1, NULL, 0), done, arg);
}

void store_put_build(struct store *s, const struct build_row *row, store_done_fn *done, void *arg)
{
	const char *const texts[] = {row->id, row->template_id, row->status, row->reason,
		row->origin, row->digest, row->root, row->layer};
	const int64_t numbers[] = {
		row->failed_step, row->created_ms, row->started_ms, row->ended_ms, row->bytes};
	struct operation *op =
		with_values(sql_put_build, texts, ARRAY_LEN(texts), numbers, ARRAY_LEN(numbers));
	operation_add_blob(op, row->config, row->config_len);
	operation_add_blob(op, row->tags, row->tags_len);
	store_submit(s, op, done, arg);
}

void store_delete_build(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_submit(s, with_values(sql_delete_build, &id, 1, NULL, 0), done, arg);
}

void store_put_tag(struct store *s, const struct tag_row *row, store_done_fn *done, void *arg)
{
	const char *const texts[] = {row->template_id, row->tag, row->build_id};
	store_submit(s, with_values(sql_put_tag, texts, ARRAY_LEN(texts), &row->created_ms, 1),
		done, arg);
}

void store_delete_tag(
	struct store *s, const char *template_id, const char *tag, store_done_fn *done, void *arg)
{
	const char *const texts[] = {template_id, tag};
	store_submit(s, with_values(sql_delete_tag, texts, ARRAY_LEN(texts), NULL, 0), done, arg);
}

void store_put_layer(struct store *s, const struct layer_row *row, store_done_fn *done, void *arg)
{
	const char *const texts[] = {row->id, row->tenant, row->key, row->root};
	const int64_t numbers[] = {row->bytes, row->created_ms, row->used_ms};
	store_submit(s,
		with_values(sql_put_layer, texts, ARRAY_LEN(texts), numbers, ARRAY_LEN(numbers)),
		done, arg);
}

void store_delete_layer(struct store *s, const char *id, store_done_fn *done, void *arg)
{
	store_submit(s, with_values(sql_delete_layer, &id, 1, NULL, 0), done, arg);
}

/* ---- reading ---- */

struct reading {
	const struct template_reader *reader;
	void *arg;
};

static void read_template(const struct reading *r, sqlite3_stmt *st)
{
	r->reader->template_row(r->arg,
		&(struct template_row){store_text_at(st, 0), store_text_at(st, 1),
			store_text_at(st, 2), store_text_at(st, 3), sqlite3_column_int64(st, 4)});
}

static void read_build(const struct reading *r, sqlite3_stmt *st)
{
	struct build_row row = {0};
	const char **const texts[] = {&row.id, &row.template_id, &row.status, &row.reason,
		&row.origin, &row.digest, &row.root, &row.layer};
	int64_t *const numbers[] = {
		&row.failed_step, &row.created_ms, &row.started_ms, &row.ended_ms, &row.bytes};
	int column = 0;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		*texts[i] = store_text_at(st, column++);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		*numbers[i] = sqlite3_column_int64(st, column++);
	row.config = sqlite3_column_blob(st, column);
	row.config_len = (size_t)sqlite3_column_bytes(st, column++);
	row.tags = sqlite3_column_blob(st, column);
	row.tags_len = (size_t)sqlite3_column_bytes(st, column);
	r->reader->build_row(r->arg, &row);
}

static void read_tag(const struct reading *r, sqlite3_stmt *st)
{
	r->reader->tag_row(r->arg, &(struct tag_row){store_text_at(st, 0), store_text_at(st, 1),
					   store_text_at(st, 2), sqlite3_column_int64(st, 3)});
}

static void read_layer(const struct reading *r, sqlite3_stmt *st)
{
	r->reader->layer_row(r->arg,
		&(struct layer_row){store_text_at(st, 0), store_text_at(st, 1),
			store_text_at(st, 2), store_text_at(st, 3), sqlite3_column_int64(st, 4),
			sqlite3_column_int64(st, 5), sqlite3_column_int64(st, 6)});
}

static int read_all(struct store *s, const char *sql, const struct reading *r,
	void (*read)(const struct reading *r, sqlite3_stmt *st))
{
	sqlite3_stmt *st;
	int result;
	if (sqlite3_prepare_v2(s->db, sql, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((result = sqlite3_step(st)) == SQLITE_ROW)
		read(r, st);
	sqlite3_finalize(st);
	return result == SQLITE_DONE ? 0 : -1;
}

int store_read_templates(struct store *s, const struct template_reader *reader, void *arg)
{
	struct reading r = {reader, arg};
	if (read_all(s, sql_all_templates, &r, read_template) < 0 ||
		read_all(s, sql_all_builds, &r, read_build) < 0 ||
		read_all(s, sql_all_tags, &r, read_tag) < 0)
		return -1;
	return read_all(s, sql_all_layers, &r, read_layer);
}
