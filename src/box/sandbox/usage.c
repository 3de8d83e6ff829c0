/*
 * Usage. The kernel counts cpu time for each boot; memory over time is what samples say, taken of
 * every sandbox each SAMPLE_MS and when it is paused, resumed or ended. What an ended boot has used
 * is added up and kept in the row.
 *
 * The samplings are spread: a sandbox goes to the end of a list when it was asked for, and whoever
 * stands in front is due first. The history is a ring that grows with the age of its sandbox.
 */
#include "box/sandbox/usage.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/disk_name.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "box/sandbox/status.h"

#define SAMPLE_MS      5000
#define SAMPLE_SOON_MS 10 /* when more are due than are asked for at once */
#define AT_ONCE        16 /* so that nobody waits for the warden behind more than these */
#define DISK_EVERY     6  /* the disk is asked for with every so many samples */
#define STORE_EVERY    12 /* what a crash may lose of the memory's account */
#define HISTORY_FIRST  8

/* ---- what is known ---- */

static int64_t total_cpu_us(const struct sandbox *s)
{
	return s->usage.cpu_before_us + s->usage.cpu_us;
}

/* Byte-seconds up to now, at the amount that was seen last. */
static void add_memory(struct usage_state *u, int64_t now_us, int64_t memory)
{
	if (u->sampled_us) {
		double seconds = (double)(now_us - u->sampled_us) / 1e6;
		u->memory_byte_seconds += (double)(u->memory + memory) / 2 * seconds;
	}
	u->sampled_us = now_us;
	u->memory = memory;
}

static void sandbox_usage_remember(struct sandbox *s)
{
	struct usage_state *u = &s->usage;
	if (u->history_len == u->history_cap && u->history_cap < USAGE_SAMPLES_MAX) {
		size_t cap = u->history_cap ? u->history_cap * 2 : HISTORY_FIRST;
		cap = cap > USAGE_SAMPLES_MAX ? USAGE_SAMPLES_MAX : cap;
		struct usage_sample *grown = realloc(u->history, cap * sizeof *grown);
		if (!grown)
			abort();
		u->history = grown;
		u->history_cap = cap;
	}
	size_t at = u->history_len < USAGE_SAMPLES_MAX ? u->history_len++ : u->history_next;
	u->history_next = (at + 1) % USAGE_SAMPLES_MAX;
	u->history[at] =
		(struct usage_sample){clock_wall_ms(), total_cpu_us(s), u->memory, u->disk};
}

static void sandbox_usage_take(struct sandbox *s, const struct warden_usage *usage)
{
	add_memory(&s->usage, clock_monotonic_us(), usage->memory);
	s->usage.cpu_us = usage->cpu_us;
	s->usage.pids = usage->pids;
	sandbox_usage_remember(s);
}

size_t usage_samples(const struct sandbox *s, struct usage_sample out[USAGE_SAMPLES_MAX])
{
	const struct usage_state *u = &s->usage;
	size_t first = u->history_len < USAGE_SAMPLES_MAX ? 0 : u->history_next;
	for (size_t i = 0; i < u->history_len; i++)
		out[i] = u->history[(first + i) % USAGE_SAMPLES_MAX];
	return u->history_len;
}

/* ---- asking ---- */

struct question {
	struct box *box;
	char id[ID_SIZE];
	usage_fn *measured; /* NULL: for the history only */
	void *arg;
};

static struct question *question_new(struct sandbox *s, usage_fn *measured, void *arg)
{
	struct question *q = mem_new(sizeof *q);
	*q = (struct question){.box = s->box, .measured = measured, .arg = arg};
	memcpy(q->id, s->id, ID_SIZE);
	return q;
}

static void view(const struct sandbox *s, struct usage_view *out)
{
	*out = (struct usage_view){
		.cpu_us = total_cpu_us(s),
		.memory_byte_seconds = (int64_t)s->usage.memory_byte_seconds,
		.memory = s->usage.memory,
		.pids = s->usage.pids,
		.disk = s->usage.disk,
	};
}

static void question_end(struct question *q)
{
	struct sandbox *s = sandbox_find_any(q->box, q->id);
	struct usage_view v;
	if (s)
		view(s, &v);
	if (q->measured)
		q->measured(q->arg, s ? &v : NULL);
	box_check_closed(q->box);
	free(q);
}

static void disk_answered(void *arg, const struct keeper_reply *reply)
{
	struct question *q = arg;
	struct sandbox *s = sandbox_find_any(q->box, q->id);
	if (s && reply->error == 0)
		s->usage.disk = reply->bytes;
	question_end(q);
}

static void ask_disk(struct question *q, const struct sandbox *s)
{
	struct disk_name disk = disk_of(s);
	if (s->box->pool_state.flags & POOL_QUOTA)
		s->box->driver->disk_usage(s->box->driver, &disk, disk_answered, q);
	else
		question_end(q);
}

static void kernel_answered(void *arg, const struct warden_reply *reply)
{
	struct question *q = arg;
	struct sandbox *s = sandbox_find_any(q->box, q->id);
	if (s && reply->error == 0)
		sandbox_usage_take(s, &reply->usage);
	if (s && s->known && s->usage.samples % STORE_EVERY == STORE_EVERY - 1)
		store_put_usage(s->box->store, s->id, s->usage.cpu_before_us,
			(int64_t)s->usage.memory_byte_seconds);
	if (s && (q->measured || s->usage.samples++ % DISK_EVERY == 0))
		ask_disk(q, s);
	else
		question_end(q);
}

static bool has_processes(const struct sandbox *s)
{
	return !s->ending.doomed && (sandbox_is_awake(s) || s->status == SANDBOX_PAUSED);
}

static void none_answered(void *arg, const struct error *e)
{
	(void)e;
	question_end(arg);
}

void usage_measure(struct sandbox *s, usage_fn *measured, void *arg)
{
	struct question *q = question_new(s, measured, arg);
	if (has_processes(s))
		s->box->driver->usage(s->box->driver, s->id, kernel_answered, q);
	else
		box_answer_later(s->box, none_answered, q, NULL);
}

/* ---- the history ---- */

static void sampler_fired(uv_timer_t *timer);

static void set_sampler(struct box *b, int64_t due_us, int64_t now_us)
{
	int64_t wait_ms = due_us > now_us ? (due_us - now_us) / 1000 + 1 : SAMPLE_SOON_MS;
	uv_timer_start(&b->sampler, sampler_fired, (uint64_t)wait_ms, 0);
}

static void sandbox_usage_rotate(struct box *b, struct sandbox *s, int64_t now_us)
{
	DL_DELETE2(b->samplings, s, sampling_prev, sampling_next);
	DL_APPEND2(b->samplings, s, sampling_prev, sampling_next);
	s->usage.due_us = now_us + SAMPLE_MS * 1000;
}

static void sampler_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	int64_t now = clock_monotonic_us();
	for (int asked = 0; b->samplings && b->samplings->usage.due_us <= now && asked < AT_ONCE;) {
		struct sandbox *s = b->samplings;
		sandbox_usage_rotate(b, s, now);
		if (!has_processes(s) || s->turn.taken)
			continue;
		asked++;
		b->driver->usage(b->driver, s->id, kernel_answered, question_new(s, NULL, NULL));
	}
	if (b->samplings && !b->closing)
		set_sampler(b, b->samplings->usage.due_us, now);
}

void usage_begin(struct sandbox *s)
{
	struct box *b = s->box;
	int64_t now = clock_monotonic_us();
	bool first = b->samplings == NULL;
	s->usage.disk = -1;
	usage_boot_began(&s->usage);
	s->usage.due_us = now + SAMPLE_MS * 1000;
	s->usage.sampling = true;
	DL_APPEND2(b->samplings, s, sampling_prev, sampling_next);
	if (first)
		set_sampler(b, s->usage.due_us, now);
}

void usage_end(struct sandbox *s)
{
	if (s->usage.sampling)
		DL_DELETE2(s->box->samplings, s, sampling_prev, sampling_next);
	s->usage.sampling = false;
	free(s->usage.history);
	s->usage.history = NULL;
}

/* ---- boots ---- */

void usage_boot_began(struct usage_state *u)
{
	u->sampled_us = clock_monotonic_us();
}

void usage_boot_ends(struct usage_state *u, int64_t memory)
{
	if (u->sampled_us)
		add_memory(u, clock_monotonic_us(), memory);
}

void usage_boot_ended(struct usage_state *u, int64_t cpu_us)
{
	if (cpu_us > u->cpu_us)
		u->cpu_us = cpu_us;
	add_memory(u, clock_monotonic_us(), u->memory);
	u->cpu_before_us += u->cpu_us;
	u->cpu_us = u->pids = u->memory = 0;
	u->sampled_us = 0;
}
