/* The store as a whole. */
#include "store/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/internal.h"
#include "store/schema.h"

static const struct store_table *const tables[] = {&store_sandboxes, &store_events, &store_volumes,
	&store_contexts, &store_checkpoints, &store_snapshots, &store_templates, &store_builds,
	&store_tags, &store_layers, &store_processes, &store_executions, &store_keys,
	&store_secrets, &store_tenant_secrets};

/* Adds tables and columns that an older program's database lacks, all or none. */
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
	reserve_open(&s->reserve, path);
	/* Even a reader needs 32 KiB for the shared index of the log. */
	int r;
	while ((r = s->backend->open(&s->connection, path, true, e)) == -ENOSPC &&
		reserve_give(&s->reserve))
		;
	if (r < 0) {
		reserve_close(&s->reserve);
		free(s);
		return -1;
	}
	if (schema_migrate(sqlite_handle(s->connection), e) == 0 && complete_tables(s, e) == 0 &&
		s->backend->open(&s->reading, path, false, e) == 0) {
		queue_open(&s->writes, loop, s->backend, s->connection, &s->reserve, NULL);
		queue_open(&s->reads, loop, s->backend, s->reading, NULL, s->writes);
		*ret = s;
		return 0;
	}
	s->backend->close(s->connection);
	reserve_close(&s->reserve);
	free(s);
	return -1;
}

int store_error(struct error *e, int error, const char *what)
{
	if (error == -ENOSPC)
		return error_set(e, ERROR_NO_SPACE, "%s: the data directory is full", what);
	return error_set(e, ERROR_INTERNAL, "%s", what);
}

bool store_is_busy(const struct store *s)
{
	return queue_is_busy(s->writes) || queue_is_busy(s->reads);
}

void store_close(struct store *s)
{
	queue_stop(s->writes);
	queue_stop(s->reads);
	/* The last callbacks may submit more. */
	while (queue_run_rest(s->writes) || queue_run_rest(s->reads))
		;
	queue_close(s->writes);
	queue_close(s->reads);
	s->backend->close(s->reading);
	s->backend->close(s->connection);
	reserve_close(&s->reserve);
	for (size_t i = 0; i < STORE_TEXTS_MAX; i++)
		free(s->texts[i].sql);
	free(s);
}

void store_submit(struct store *s, struct operation *op, store_done_fn *done, void *arg)
{
	op->done = done;
	op->arg = arg;
	queue_submit(s->writes, op);
}

void store_submit_read(struct store *s, struct operation *op, void *arg)
{
	op->arg = arg;
	queue_submit(s->reads, op);
}
