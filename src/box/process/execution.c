/* Executions in memory: their tables, lookups and views. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
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

bool execution_was_cut(const struct execution *x)
{
	return x->cut;
}

bool execution_has_no_program(const struct execution *x)
{
	return x->no_program;
}

const struct error *execution_refusal(const struct execution *x)
{
	return x->refusal.code == ERROR_NONE ? NULL : &x->refusal;
}

/* ---- output ---- */

uint64_t execution_length(const struct execution *x, unsigned stream)
{
	return x->exited ? x->exit.end[stream] : x->outputs[stream].end;
}

uint64_t execution_output_limit(const struct execution *x)
{
	return x->unlisted ? OUTPUT_IN_MEMORY : (uint64_t)x->box->config.output_limit;
}

bool execution_is_drained(const struct execution *x)
{
	if (!x->in_init)
		return true;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		if (!x->exited || x->outputs[i].end < x->exit.end[i])
			return false;
	return true;
}

/* ---- memory ---- */

struct execution *execution_new(struct sandbox *s, bool interpreter)
{
	struct execution *x = mem_new(sizeof *x);
	x->tenant = mem_copy_text(s->tenant);
	x->box = s->box;
	x->sandbox = s;
	x->interpreter = x->unlisted = interpreter;
	memcpy(x->sandbox_id, s->id, ID_SIZE);
	x->started_ms = clock_wall_ms();
	x->began_us = clock_monotonic_us();
	DL_APPEND(s->processes.live, x);
	execution_count(x, 1);
	return x;
}

/* Unlisted executions cannot be queried later, so their output is never spooled. */
void execution_place_outputs(struct execution *x)
{
	struct spool *spool = x->unlisted ? NULL : x->box->processes.spool;
	struct kept_account *account = spool ? kept_of(x->box, x->tenant) : NULL;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		output_init(&x->outputs[i], spool, account, x->id, i);
		x->outputs[i].full = x->interpreter;
	}
	/* A terminal's last screens can be seen however long it has been in use. */
	x->outputs[FRAME_STDOUT].recent = x->terminal ? OUTPUT_RECENT : 0;
}

/* Runs of an interpreter are counted, not the interpreter's own life. */
void execution_count(struct execution *x, int change)
{
	if (x->interpreter)
		return;
	if (change > 0)
		sandbox_execution_began(x->sandbox);
	else
		sandbox_execution_ended(x->sandbox);
}

void execution_index(struct execution *x)
{
	HASH_ADD(by_id, x->box->processes.by_id, id, ID_LEN, x);
	x->indexed = true;
	x->box->counters.executions_running++;
}

void execution_free_if_unused(struct execution *x)
{
	if (x->watchers || x->sandbox || !execution_has_ended(x) || !x->committed)
		return;
	if (x->indexed)
		HASH_DELETE(by_id, x->box->processes.by_id, x);
	for (int i = 0; i < EXECUTION_STREAMS; i++)
		output_finish(&x->outputs[i]);
	buf_finish(&x->input);
	buf_finish(&x->command);
	buf_finish(&x->env);
	char *const strings[] = {x->tenant, x->user, x->cwd, x->name};
	for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
		free(strings[i]);
	free(x);
}

struct execution *execution_find(struct box *b, const char *tenant, const char *id)
{
	struct execution *x = NULL;
	if (!id_is_valid(id))
		return NULL;
	HASH_FIND(by_id, b->processes.by_id, id, ID_LEN, x);
	return x && (!tenant || strcmp(x->tenant, tenant) == 0) ? x : NULL;
}

uint64_t execution_sign(const struct sandbox *s, const char id[ID_SIZE])
{
	char names[2 * ID_LEN];
	uint64_t tag;
	static_assert(sizeof tag == crypto_shorthash_BYTES, "a tag is one hash");
	static_assert(TAG_KEY_SIZE == crypto_shorthash_KEYBYTES, "and signed by its key");
	memcpy(names, s->id, ID_LEN);
	memcpy(names + ID_LEN, id, ID_LEN);
	crypto_shorthash(
		(uint8_t *)&tag, (const uint8_t *)names, sizeof names, s->box->processes.tag_key);
	return tag;
}

struct execution *execution_find_tag(const struct sandbox *s, uint64_t tag)
{
	struct execution *x;
	DL_FOREACH (s->processes.live, x)
		if (x->tag == tag)
			return x;
	return NULL;
}

static struct execution *execution_is_listed(struct execution *x)
{
	while (x && x->unlisted)
		x = x->next;
	return x;
}

struct execution *execution_first(const struct sandbox *s)
{
	return execution_is_listed(s->processes.live);
}

struct execution *execution_next(const struct execution *x)
{
	return execution_is_listed(x->next);
}

void execution_each_attended(struct box *b, void (*each)(void *arg, struct execution *x), void *arg)
{
	struct sandbox *s;
	DL_FOREACH (b->sandboxes.order, s)
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
		.command = {x->command.data, x->command.len},
		.env = {x->env.data, x->env.len},
		.status = x->status,
		.shown_status = execution_shown_status(x->kind, x->status, x->exit.code),
		.pid = x->pid,
		.signal = x->exit.signal,
		.exit_code = x->exit.code,
		.timed_out = x->status == EXECUTION_TIMEOUT,
		.oom_killed = x->oom_killed,
		.started_ms = x->started_ms,
		.duration_us = execution_has_ended(x) ? (int64_t)x->exit.duration_us
						      : clock_monotonic_us() - x->began_us,
		.cpu_us = (int64_t)x->exit.cpu_us,
		.peak = (int64_t)x->exit.max_rss_kib * 1024,
		.input_open = execution_input_is_open(x),
		.input_offset = x->input_end,
	};
	if (execution_has_ended(x))
		out->ended_ms = out->started_ms + out->duration_us / 1000;
	for (int i = 0; i < EXECUTION_STREAMS; i++) {
		out->length[i] = execution_length(x, (unsigned)i);
		out->stored[i] = x->outputs[i].stored;
		out->truncated |= out->length[i] > out->stored[i];
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
