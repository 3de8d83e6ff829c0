/* The store as a whole: opening it, keys and secrets. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/internal.h"
#include "store/schema.h"

static const char sql_all_keys[] = "SELECT tenant, hash FROM keys";
static const char sql_add_key[] =
	"INSERT OR IGNORE INTO keys (tenant, hash, created_ms) VALUES (?,?,?)";
static const char sql_keep_secret[] =
	"INSERT INTO secrets (name, secret) VALUES (?,?)"
	" ON CONFLICT (name) DO UPDATE SET name = name RETURNING secret";

static const struct store_table *const tables[] = {&store_sandboxes, &store_events, &store_volumes,
	&store_contexts, &store_checkpoints, &store_snapshots};

/* What a database of an older program lacks; all of it or nothing. */
static int complete_tables(struct store *s, struct error *e)
{
	if (s->backend->script(s->connection, s->backend->begin) < 0)
		return error_set(e, ERROR_INTERNAL, "cannot write to the database: %s",
			s->backend->message(s->connection));
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		if (store_complete(s, tables[i], e) == 0)
			continue;
		s->backend->script(s->connection, "ROLLBACK");
		return -1;
	}
	return s->backend->script(s->connection, "COMMIT");
}

int store_open(struct store **ret, uv_loop_t *loop, const char *path, struct error *e)
{
	struct store *s = calloc(1, sizeof *s);
	if (!s)
		return error_set(e, ERROR_INTERNAL, "out of memory");
	s->backend = &backend_sqlite;
	if (s->backend->open(&s->connection, path, e) < 0) {
		free(s);
		return -1;
	}
	s->db = sqlite_handle(s->connection);
	if (schema_migrate(s->db, e) == 0 && complete_tables(s, e) == 0 &&
		queue_open(&s->queue, loop, s->backend, s->connection) == 0) {
		*ret = s;
		return 0;
	}
	s->backend->close(s->connection);
	free(s);
	return -1;
}

bool store_is_busy(const struct store *s)
{
	return queue_is_busy(s->queue);
}

void store_close(struct store *s)
{
	queue_close(s->queue);
	s->backend->close(s->connection);
	for (size_t i = 0; i < STORE_TEXTS_MAX; i++)
		free(s->texts[i].sql);
	free(s);
}

void store_submit(struct store *s, struct operation *op, store_done_fn *done, void *arg)
{
	op->done = done;
	op->arg = arg;
	queue_submit(s->queue, op);
}

const char *store_text_at(sqlite3_stmt *st, int column)
{
	const unsigned char *text = sqlite3_column_text(st, column);
	return text ? (const char *)text : "";
}

/* ---- keys ---- */

int store_each_key(struct store *s,
	void (*each)(void *arg, const char *tenant, const uint8_t hash[STORE_HASH_SIZE]), void *arg)
{
	sqlite3_stmt *st;
	int r;
	if (sqlite3_prepare_v2(s->db, sql_all_keys, -1, &st, NULL) != SQLITE_OK)
		return -1;
	while ((r = sqlite3_step(st)) == SQLITE_ROW)
		if (sqlite3_column_bytes(st, 1) == STORE_HASH_SIZE)
			each(arg, store_text_at(st, 0), sqlite3_column_blob(st, 1));
	sqlite3_finalize(st);
	return r == SQLITE_DONE ? 0 : -1;
}

int store_add_key(
	struct store *s, const char *tenant, const uint8_t hash[STORE_HASH_SIZE], struct error *e)
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(s->db, sql_add_key, -1, &st, NULL);
	if (r == SQLITE_OK) {
		sqlite3_bind_text(st, 1, tenant, -1, SQLITE_STATIC);
		sqlite3_bind_blob(st, 2, hash, STORE_HASH_SIZE, SQLITE_STATIC);
		sqlite3_bind_int64(st, 3, clock_wall_ms());
		r = sqlite3_step(st);
	}
	sqlite3_finalize(st);
	if (r != SQLITE_DONE)
		return error_set(
			e, ERROR_INTERNAL, "cannot store the API key: %s", sqlite3_errmsg(s->db));
	return 0;
}

int store_keep_secret(
	struct store *s, const char *name, uint8_t secret[STORE_SECRET_SIZE], struct error *e)
{
	sqlite3_stmt *st = NULL;
	int r = sqlite3_prepare_v2(s->db, sql_keep_secret, -1, &st, NULL);
	if (r == SQLITE_OK) {
		sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
		sqlite3_bind_blob(st, 2, secret, STORE_SECRET_SIZE, SQLITE_TRANSIENT);
		r = sqlite3_step(st);
	}
	if (r == SQLITE_ROW && sqlite3_column_bytes(st, 0) == STORE_SECRET_SIZE) {
		memcpy(secret, sqlite3_column_blob(st, 0), STORE_SECRET_SIZE);
		r = sqlite3_step(st);
	}
	sqlite3_finalize(st);
	if (r != SQLITE_DONE)
		return error_set(
			e, ERROR_INTERNAL, "cannot keep a secret: %s", sqlite3_errmsg(s->db));
	return 0;
}
