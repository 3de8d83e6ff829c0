/* Executions that have ended, as the store and the spool have them. */
#include "box/core.h"

#include <stdlib.h>

struct loading {
	struct box *box;
	execution_loaded_fn *loaded;
	void *arg;
};

static void load_output(const struct box *b, const struct execution_row *row, unsigned stream,
	struct output_copy *ret)
{
	char path[256];
	struct output o;
	output_init(&o);
	if (row->spooled[stream]) {
		output_path(b, row->id, stream, path);
		output_restore(&o, path);
	} else {
		buf_append(&o.memory, row->data[stream], (size_t)row->stored[stream]);
		o.stored = o.memory.len;
	}
	output_copy(&o, ret);
	output_finish(&o);
}

static void view_of_row(const struct execution_row *row, struct execution_view *view)
{
	*view = (struct execution_view){
		.id = row->id,
		.sandbox_id = row->sandbox,
		.name = row->name,
		.user = row->user,
		.cwd = row->cwd,
		.kind = row->kind >= 0 && row->kind < EXECUTION_KIND_COUNT
				? (enum execution_kind)row->kind
				: EXECUTION_COMMAND,
		.terminal = row->terminal,
		.command = row->command,
		.command_len = row->command_len,
		.status = execution_status_of(row->status),
		.pid = (int32_t)row->pid,
		.exit_code = (int)row->exit_code,
		.signal = (int)row->signal,
		.timed_out = row->timed_out,
		.oom_killed = row->oom_killed,
		.started_ms = row->started_ms,
		.duration_us = row->duration_us,
		.cpu_us = row->cpu_us,
		.peak = row->peak,
	};
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		view->length[i] = (uint64_t)row->length[i];
		view->stored[i] = (uint64_t)row->stored[i];
		view->truncated |= row->length[i] > row->stored[i];
	}
}

static void row_found(void *arg, const struct execution_row *row)
{
	struct loading *l = arg;
	struct output_copy copies[EXECUTION_STREAMS] = {{.fd = -1}, {.fd = -1}};
	struct execution_view view;
	if (row) {
		view_of_row(row, &view);
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			load_output(l->box, row, i, &copies[i]);
	}
	l->loaded(l->arg, row ? &view : NULL, copies);
	free(l);
}

void execution_load(
	struct box *b, const char *tenant, const char *id, execution_loaded_fn *loaded, void *arg)
{
	struct loading *l = calloc(1, sizeof *l);
	if (!l)
		abort();
	*l = (struct loading){.box = b, .loaded = loaded, .arg = arg};
	store_get_execution(b->store, id, tenant, row_found, l);
}

/* ---- many ---- */

struct listing {
	execution_listed_fn *listed;
	void *arg;
};

static void row_listed(void *arg, const struct execution_row *row)
{
	struct listing *l = arg;
	struct execution_view view;
	if (row)
		view_of_row(row, &view);
	l->listed(l->arg, row ? &view : NULL);
	if (!row)
		free(l);
}

void execution_list_ended(struct box *b, const struct execution_filter *filter,
	execution_listed_fn *listed, void *arg)
{
	struct listing *l = calloc(1, sizeof *l);
	if (!l)
		abort();
	*l = (struct listing){listed, arg};
	store_list_executions(b->store,
		&(struct execution_query){
			.tenant = filter->tenant,
			.sandbox = filter->sandbox_id ? filter->sandbox_id : "",
			.kinds = filter->kinds ? filter->kinds : ~0u,
			.before_ms = filter->before_ms ? filter->before_ms : INT64_MAX,
			.before_id = filter->before_id ? filter->before_id : "",
			.limit = filter->limit,
		},
		row_listed, l);
}
