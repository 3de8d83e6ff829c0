/* Executions in memory: their tables, how they are found, what everybody may read of them. */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "box/process/execution_core.h"
#include "box/sandbox/object.h"

bool execution_has_started(const struct execution *x)
{
	return x->status != EXECUTION_QUEUED;
}

bool execution_has_ended(const struct execution *x)
{
	return x->status > EXECUTION_RUNNING;
}

bool execution_has_no_program(const struct execution *x)
{
	return x->no_program;
}

const struct error *execution_refusal(const struct execution *x)
{
	return x->refusal.code == ERROR_NONE ? NULL : &x->refusal;
}

/* ---- memory ---- */

struct execution *execution_new(struct sandbox *s, bool kernel)
{
	struct execution *x = calloc(1, sizeof *x);
	if (!x || !(x->tenant = strdup(s->tenant)))
		abort();
	x->box = s->box;
	x->sandbox = s;
	x->kernel = x->unlisted = kernel;
	memcpy(x->sandbox_id, s->id, ID_SIZE);
	x->started_ms = clock_wall_ms();
	for (int i = 0; i < EXECUTION_STREAMS; i++) {
		output_init(&x->outputs[i]);
		x->outputs[i].full = kernel;
	}
	DL_APPEND(s->processes.live, x);
	execution_count(x, 1);
	return x;
}

/* Of a kernel its runs are counted, not its life. */
void execution_count(struct execution *x, int change)
{
	if (x->kernel)
		return;
	if (change > 0)
		sandbox_execution_began(x->sandbox);
	else
		sandbox_execution_ended(x->sandbox);
}

void execution_index(struct execution *x)
{
	HASH_ADD(by_id, x->box->executions, id, ID_LEN, x);
	x->indexed = true;
	x->box->counters.executions_running++;
}

void execution_free_if_unused(struct execution *x)
{
	if (x->watchers || !execution_has_ended(x) || !x->committed)
		return;
	if (x->indexed)
		HASH_DELETE(by_id, x->box->executions, x);
	for (int i = 0; i < EXECUTION_STREAMS; i++)
		output_finish(&x->outputs[i]);
	buf_finish(&x->input);
	buf_finish(&x->command);
	char *const strings[] = {x->tenant, x->user, x->cwd, x->name};
	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
		free(strings[i]);
	free(x);
}

void execution_set_terminal(struct execution *x, bool terminal)
{
	x->terminal = terminal;
	x->outputs[FRAME_STDOUT].recent = terminal ? OUTPUT_RECENT : 0;
}

struct execution *execution_find(struct box *b, const char *tenant, const char *id)
{
	struct execution *x = NULL;
	if (!id_is_valid(id))
		return NULL;
	HASH_FIND(by_id, b->executions, id, ID_LEN, x);
	return x && (!tenant || strcmp(x->tenant, tenant) == 0) ? x : NULL;
}

struct execution *execution_find_tag(const struct sandbox *s, uint64_t tag)
{
	struct execution *x;
	DL_FOREACH (s->processes.live, x)
		if (x->tag == tag)
			return x;
	return NULL;
}

static struct execution *listed(struct execution *x)
{
	while (x && x->unlisted)
		x = x->next;
	return x;
}

struct execution *execution_first(const struct sandbox *s)
{
	return listed(s->processes.live);
}

struct execution *execution_next(const struct execution *x)
{
	return listed(x->next);
}

void execution_each_attended(struct box *b, void (*each)(void *arg, struct execution *x), void *arg)
{
	struct sandbox *s;
	DL_FOREACH (b->order, s)
		for (struct execution *x = execution_first(s); x; x = execution_next(x))
			if (x->attended && !execution_has_ended(x))
				each(arg, x);
}

struct execution *execution_find_pid(const struct sandbox *s, int32_t pid)
{
	for (struct execution *x = execution_first(s); x; x = execution_next(x))
		if (x->pid == pid && x->status == EXECUTION_RUNNING)
			return x;
	return NULL;
}

/* The newest, when several have the name. */
struct execution *execution_find_name(const struct sandbox *s, const char *name)
{
	struct execution *found = NULL;
	for (struct execution *x = execution_first(s); x; x = execution_next(x))
		if (strcmp(x->name, name) == 0 && !execution_has_ended(x))
			found = x;
	return found;
}

void execution_view(const struct execution *x, struct execution_view *out)
{
	*out = (struct execution_view){
		.id = x->id,
		.sandbox_id = x->sandbox_id,
		.name = x->name,
		.user = x->user,
		.cwd = x->cwd,
		.kind = x->kind,
		.terminal = x->terminal,
		.command = x->command.data,
		.command_len = x->command.len,
		.status = x->status,
		.pid = x->pid,
		.signal = x->exit.signal,
		.exit_code = x->exit.code,
		.timed_out = x->status == EXECUTION_TIMEOUT,
		.oom_killed = x->oom_killed,
		.started_ms = x->started_ms,
		.duration_us = execution_has_ended(x) ? (int64_t)x->exit.duration_us
						      : (clock_wall_ms() - x->started_ms) * 1000,
		.cpu_us = (int64_t)x->exit.cpu_us,
		.peak = (int64_t)x->exit.max_rss_kib * 1024,
		.input_open = execution_input_is_open(x),
		.input_offset = x->input_end,
	};
	for (int i = 0; i < EXECUTION_STREAMS; i++) {
		out->length[i] = x->outputs[i].end;
		out->stored[i] = x->outputs[i].stored;
		out->truncated |= x->outputs[i].end > x->outputs[i].stored;
	}
}

/* ---- frames out ---- */

void execution_send(struct execution *x, enum frame_type type, unsigned stream, uint64_t offset,
	const void *data, size_t len)
{
	if (x->sandbox && x->sandbox->init.link)
		frame_append(init_link_buffer(x->sandbox->init.link), type, stream, x->tag, offset,
			data, len);
}

void execution_flush(struct execution *x)
{
	if (x->sandbox && x->sandbox->init.link)
		init_link_flush(x->sandbox->init.link);
}
