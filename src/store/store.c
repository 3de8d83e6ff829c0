/* The store as a whole. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/internal.h"
#include "store/schema.h"

static const struct store_table *const tables[] = {&store_sandboxes, &store_events, &store_volumes,
	&store_contexts, &store_checkpoints, &store_snapshots, &store_templates, &store_builds,
	&store_tags, &store_layers, &store_processes, &store_executions, &store_keys,
	&store_secrets};

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
	if (schema_migrate(sqlite_handle(s->connection), e) == 0 && complete_tables(s, e) == 0 &&
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
