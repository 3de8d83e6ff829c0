/*
 * Executions in the store. One whose id somebody knows is recorded when it begins, so that it is
 * not forgotten if it dies together with us: the next start finds it recorded, not with any init,
 * and reports it as failed. The end replaces the record.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/process/execution_core.h"
#include "box/sandbox/object.h"

static struct execution_row row_of(const struct execution *x)
{
	struct execution_row row = {
		.id = x->id,
		.sandbox = x->sandbox_id,
		.tenant = x->tenant,
		.command = {x->command.data, x->command.len},
		.status = execution_status_name(x->status),
		.exit_code = x->exit.code,
		.signal = x->exit.signal,
		.timed_out = x->status == EXECUTION_TIMEOUT,
		.oom_killed = x->oom_killed,
		.started_ms = x->started_ms,
		.duration_us = (int64_t)x->exit.duration_us,
		.kind = (int64_t)x->kind,
		.terminal = x->terminal,
		.name = x->name,
		.user = x->user,
		.cwd = x->cwd,
		.pid = x->pid,
		.cpu_us = (int64_t)x->exit.cpu_us,
		.peak = (int64_t)x->exit.max_rss_kib * 1024,
	};
	for (int i = 0; i < EXECUTION_STREAMS; i++) {
		row.length[i] = (int64_t)x->outputs[i].end;
		row.stored[i] = (int64_t)x->outputs[i].stored;
		row.spooled[i] = x->outputs[i].fd >= 0;
		if (!row.spooled[i])
			row.data[i] = (struct strings){
				x->outputs[i].memory.data, (size_t)x->outputs[i].stored};
	}
	return row;
}

void execution_record(struct execution *x)
{
	if (x->recorded || x->unlisted || execution_has_ended(x))
		return;
	x->recorded = true;
	struct execution_row row = row_of(x);
	store_begin_execution(x->box->store, &row);
}

void execution_store(struct execution *x, store_added_fn *stored, void *arg)
{
	struct execution_row row = row_of(x);
	store_put_execution(x->box->store, &row, stored, arg);
}

/* ---- at start ---- */

struct recorded {
	struct recorded *next;
	struct execution *execution; /* in no table */
};

static void execution_record_remember(void *arg, const void *row)
{
	struct box *b = arg;
	struct recorded *r = mem_new(sizeof *r);
	r->execution = execution_revive(b, row);
	r->next = b->recorded;
	b->recorded = r;
}

int execution_load_recorded(struct box *b)
{
	return store_each_begun(b->store, execution_record_remember, b);
}

/* One of a paused sandbox is not lost: its init says so when it wakes up. */
static bool is_lost(const struct execution *x)
{
	struct execution *known = NULL;
	struct sandbox *s = NULL;
	HASH_FIND(by_id, x->box->executions, x->id, ID_LEN, known);
	HASH_FIND(by_id, x->box->sandboxes, x->sandbox_id, ID_LEN, s);
	return !known && (!s || s->status != SANDBOX_PAUSED);
}

/* What is on disk of its output is kept; the rest went with its init. */
static void store_lost(struct execution *x)
{
	struct sandbox *s = NULL;
	HASH_FIND(by_id, x->box->sandboxes, x->sandbox_id, ID_LEN, s);
	if (s)
		s->executions++;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		char path[256];
		output_path(x->box, x->id, i, path);
		output_restore(&x->outputs[i], path);
	}
	x->recorded = true;
	x->status = EXECUTION_FAILED;
	x->exit = (struct frame_exit){.code = 128 + SIGKILL,
		.signal = SIGKILL,
		.duration_us = (uint64_t)(clock_wall_ms() - x->started_ms) * 1000};
	log_warn("a process was lost", "execution", x->id, "sandbox", x->sandbox_id);
	execution_store(x, NULL, NULL);
}

void execution_settle_recorded(struct box *b)
{
	for (struct recorded *r = b->recorded; r; r = r->next)
		if (is_lost(r->execution))
			store_lost(r->execution);
	execution_drop_recorded(b);
}

void execution_drop_recorded(struct box *b)
{
	while (b->recorded) {
		struct recorded *r = b->recorded;
		b->recorded = r->next;
		execution_free_if_unused(r->execution);
		free(r);
	}
}
