/* Executions that have ended, as the store and the spool have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/process/execution_core.h"
#include "base/mem.h"
#include "box/sandbox/object.h"

struct loading {
	struct box *box;
	execution_loaded_fn *loaded;
	void *arg;
};

static enum execution_kind kind_of(int64_t number)
{
	bool known = number >= 0 && number < EXECUTION_KIND_COUNT;
	return known ? (enum execution_kind)number : EXECUTION_COMMAND;
}

static void revive_output(struct execution *x, const struct execution_row *row, unsigned stream)
{
	struct output *o = &x->outputs[stream];
	output_init(o, x->box->processes.spool, NULL, x->id, stream);
	if (row->spooled[stream]) {
		output_restore(o);
	} else {
		buf_append(&o->memory, row->data[stream].data, row->data[stream].len);
		o->stored = o->memory.len;
	}
	o->end = (uint64_t)row->length[stream];
	if (o->end < o->stored)
		o->end = o->stored;
}

struct execution *execution_revive(struct box *b, const struct execution_row *row)
{
	struct execution *x = mem_new(sizeof *x);
	x->box = b;
	snprintf(x->id, sizeof x->id, "%s", row->id);
	snprintf(x->sandbox_id, sizeof x->sandbox_id, "%s", row->sandbox);
	x->tenant = sandbox_copy_string(row->tenant);
	x->name = sandbox_copy_string(row->name);
	x->user = sandbox_copy_string(row->user);
	x->cwd = sandbox_copy_string(row->cwd);
	x->kind = kind_of(row->kind);
	x->terminal = row->terminal;
	x->status = row->status ? execution_status_of(row->status) : EXECUTION_FAILED;
	x->pid = (int32_t)row->pid;
	x->exit = (struct frame_exit){
		.code = (int32_t)row->exit_code,
		.signal = (int32_t)row->signal,
		.cpu_us = (uint64_t)row->cpu_us,
		.max_rss_kib = (uint32_t)(row->peak / 1024),
		.duration_us = (uint64_t)row->duration_us,
	};
	x->oom_killed = row->oom_killed;
	x->started_ms = row->started_ms;
	x->committed = x->input_closed = true;
	buf_append(&x->command, row->command.data, row->command.len);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		revive_output(x, row, i);
	return x;
}

static void execution_load_row_found(void *arg, const void *row, int error)
{
	struct error e;
	struct loading *l = arg;
	struct execution *x = row ? execution_revive(l->box, row) : NULL;
	struct execution_watcher hold = {.changed = NULL};
	if (x)
		execution_watch(x, &hold);
	if (error)
		store_error(&e, error, "the execution could not be read from the database");
	l->loaded(l->arg, x, error ? &e : NULL);
	if (x)
		execution_unwatch(x, &hold);
	free(l);
}

void execution_load(struct box *b, const char *tenant, const char *sandbox_id, const char *id,
	execution_loaded_fn *loaded, void *arg)
{
	struct loading *l = mem_new(sizeof *l);
	*l = (struct loading){.box = b, .loaded = loaded, .arg = arg};
	store_get_execution(b->store, id, tenant, sandbox_id, execution_load_row_found, l);
}

/* ---- many ---- */

static void view_of_row(const struct execution_row *row, struct execution_view *view)
{
	*view = (struct execution_view){
		.id = row->id,
		.sandbox_id = row->sandbox,
		.name = row->name,
		.user = row->user,
		.cwd = row->cwd,
		.kind = kind_of(row->kind),
		.terminal = row->terminal,
		.command = row->command,
		.status = execution_status_of(row->status),
		.pid = row->pid,
		.exit_code = row->exit_code,
		.signal = row->signal,
		.timed_out = row->timed_out,
		.oom_killed = row->oom_killed,
		.started_ms = row->started_ms,
		.duration_us = row->duration_us,
		.cpu_us = row->cpu_us,
		.peak = row->peak,
	};
	view->shown_status = execution_shown_status(view->kind, view->status, view->exit_code);
	if (view->status > EXECUTION_RUNNING)
		view->ended_ms = view->started_ms + view->duration_us / 1000;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		view->length[i] = (uint64_t)row->length[i];
		view->stored[i] = (uint64_t)row->stored[i];
		view->truncated |= row->length[i] > row->stored[i];
	}
}

struct listing {
	execution_listed_fn *listed;
	void *arg;
};

static void execution_load_row_listed(void *arg, const void *row, int error)
{
	struct error e;
	struct listing *l = arg;
	struct execution_view view;
	if (row)
		view_of_row(row, &view);
	if (error)
		store_error(&e, error, "the executions could not be read from the database");
	l->listed(l->arg, row ? &view : NULL, error ? &e : NULL);
	if (!row)
		free(l);
}

void execution_list_ended(struct box *b, const struct execution_filter *filter,
	execution_listed_fn *listed, void *arg)
{
	struct listing *l = mem_new(sizeof *l);
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
		execution_load_row_listed, l);
}
