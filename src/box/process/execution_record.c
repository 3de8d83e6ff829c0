/*
 * Executions in the store. One whose id was told to a client is recorded when it begins, so that it
 * is not forgotten if it dies together with the front: the next start finds it recorded, not with
 * any init, and reports it as failed. The end replaces the record.
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

/* The disk that a row takes besides its texts: indices and other columns. */
#define ROW_BYTES 1024

static uint64_t execution_row_bytes(const struct execution *x)
{
	uint64_t sum =
		ROW_BYTES + x->command.len + strlen(x->name) + strlen(x->user) + strlen(x->cwd);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		sum += x->outputs[i].stored;
	return sum;
}

void execution_charge_record(struct execution *x)
{
	if (x->unlisted)
		return;
	x->charged = ROW_BYTES + x->command.len;
	kept_force_charge(kept_of(x->box, x->tenant), x->charged);
}

void execution_charge_row(struct execution *x, bool is_new)
{
	struct kept_account *a = kept_of(x->box, x->tenant);
	uint64_t before = x->charged;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		before += x->outputs[i].charged;
		x->outputs[i].charged = 0;
	}
	x->charged = 0;
	kept_release(a, before);
	if (is_new)
		kept_add_row(a, x->row_bytes);
}

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
		.kept = (int64_t)execution_row_bytes(x),
	};
	for (int i = 0; i < EXECUTION_STREAMS; i++) {
		row.length[i] = (int64_t)execution_length(x, (unsigned)i);
		row.stored[i] = (int64_t)x->outputs[i].stored;
		row.spooled[i] = x->outputs[i].spooled;
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
	execution_charge_record(x);
	struct execution_row row = row_of(x);
	store_begin_execution(x->box->store, &row);
}

void execution_store(struct execution *x, store_added_fn *stored, void *arg)
{
	struct execution_row row = row_of(x);
	x->row_bytes = (uint64_t)row.kept;
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
	r->next = b->processes.recorded;
	b->processes.recorded = r;
}

int execution_load_recorded(struct box *b)
{
	return store_each_begun(b->store, execution_record_remember, b);
}

static struct sandbox *recorded_sandbox(const struct execution *x)
{
	struct sandbox *s = NULL;
	HASH_FIND(by_id, x->box->sandboxes.by_id, x->sandbox_id, ID_LEN, s);
	return s;
}

/* A process of a paused sandbox is not lost: its init reports it when it wakes up. */
static bool is_lost(const struct execution *x)
{
	struct execution *known = NULL;
	const struct sandbox *s = recorded_sandbox(x);
	HASH_FIND(by_id, x->box->processes.by_id, x->id, ID_LEN, known);
	return !known && (!s || !s->init.unheard);
}

struct sandbox *execution_awaits(struct box *b, const char *tenant, const char *id)
{
	const struct recorded *r = b->processes.recorded;
	while (r && (strcmp(r->execution->id, id) != 0 ||
			    (tenant && strcmp(r->execution->tenant, tenant) != 0)))
		r = r->next;
	return r ? recorded_sandbox(r->execution) : NULL;
}

/* Output that is on disk is kept; the rest went with its init. */
static void store_lost(struct execution *x)
{
	struct sandbox *s = recorded_sandbox(x);
	if (s)
		s->executions++;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		output_restore(&x->outputs[i]);
	x->recorded = true;
	x->status = EXECUTION_FAILED;
	x->exit = (struct frame_exit){.code = 128 + SIGKILL,
		.signal = SIGKILL,
		.duration_us = (uint64_t)(clock_wall_ms() - x->started_ms) * 1000};
	log_warn("a process was lost", "execution", x->id, "sandbox", x->sandbox_id);
	execution_store(x, NULL, NULL);
	execution_charge_row(x, true);
}

/* Frees it; returns the one behind it. */
static struct recorded *recorded_free(struct recorded *r)
{
	struct recorded *next = r->next;
	execution_free_if_unused(r->execution);
	free(r);
	return next;
}

void execution_settle_recorded(struct box *b, const char *sandbox)
{
	struct recorded **at = &b->processes.recorded;
	while (*at) {
		struct recorded *r = *at;
		bool others = sandbox && strcmp(r->execution->sandbox_id, sandbox) != 0;
		const struct sandbox *s = others ? NULL : recorded_sandbox(r->execution);
		if (others || (s && s->init.reconciling)) {
			at = &r->next;
			continue;
		}
		if (is_lost(r->execution))
			store_lost(r->execution);
		*at = recorded_free(r);
	}
}

void execution_forget_recorded(const struct sandbox *s)
{
	struct recorded **at = &s->box->processes.recorded;
	while (*at) {
		if (strcmp((*at)->execution->sandbox_id, s->id) == 0)
			*at = recorded_free(*at);
		else
			at = &(*at)->next;
	}
}

void execution_drop_recorded(struct box *b)
{
	while (b->processes.recorded)
		b->processes.recorded = recorded_free(b->processes.recorded);
}
