/*
 * Usage. The kernel counts cpu time for each boot; memory over time is what samples say, taken of
 * every sandbox each SAMPLE_MS and when it is paused, resumed or ended. The usage of ended boots is
 * added up and kept in the row.
 *
 * Samples are spread: a sandbox goes to the end of a list when it was sampled, and the first of the
 * list is due next. An idle sandbox is sampled seldom, so that thousands of them cost nothing: it
 * is in a list of its own. The history is a ring that grows with the age of its sandbox; values
 * between samples are interpolated.
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
#define IDLE_MS        120000
#define IDLE_SHARE     1000 /* who uses less than this part of a cpu's time is idle */
#define SAMPLE_SOON_MS 10   /* when more are due than are asked for at once */
#define AT_ONCE        16 /* so that no other request waits for the warden behind more than these */
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

static void sandbox_usage_remember(struct usage_state *u, const struct usage_sample *sample)
{
	if (u->history_len == u->history_cap && u->history_cap < USAGE_SAMPLES_MAX) {
		size_t cap = u->history_cap ? u->history_cap * 2 : HISTORY_FIRST;
		cap = cap > USAGE_SAMPLES_MAX ? USAGE_SAMPLES_MAX : cap;
		u->history = mem_resize(u->history, cap, sizeof *u->history);
		u->history_cap = cap;
	}
	size_t at = u->history_len < USAGE_SAMPLES_MAX ? u->history_len++ : u->history_next;
	u->history_next = (at + 1) % USAGE_SAMPLES_MAX;
	u->history[at] = *sample;
}

static struct usage_sample sample_of(const struct sandbox *s)
{
	return (struct usage_sample){
		clock_wall_ms(), total_cpu_us(s), s->usage.memory, s->usage.disk};
}

/* From the sample before, `gap_us` ago, to this one. */
static void remember_since(struct sandbox *s, const struct usage_sample *before, int64_t gap_us)
{
	struct usage_sample now = sample_of(s);
	int64_t steps = gap_us / (SAMPLE_MS * 1000);
	for (int64_t i = 1; i < steps; i++)
		sandbox_usage_remember(&s->usage,
			&(struct usage_sample){
				now.time_ms - gap_us / 1000 * (steps - i) / steps,
				before->cpu_us + (now.cpu_us - before->cpu_us) * i / steps,
				before->memory + (now.memory - before->memory) * i / steps,
				before->disk,
			});
	sandbox_usage_remember(&s->usage, &now);
}

static void sandbox_usage_take(struct sandbox *s, const struct warden_usage *usage)
{
	struct usage_state *u = &s->usage;
	struct usage_sample before = sample_of(s);
	int64_t now_us = clock_monotonic_us();
	int64_t gap_us = u->sampled_us ? now_us - u->sampled_us : 0;
	u->idle = (usage->cpu_us - u->cpu_us) * IDLE_SHARE < gap_us;
	add_memory(u, now_us, usage->memory);
	u->cpu_us = usage->cpu_us;
	u->pids = usage->pids;
	remember_since(s, &before, gap_us);
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

static void usage_view(const struct sandbox *s, struct usage_view *out)
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
		usage_view(s, &v);
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
	struct driver *d = s->box->driver;
	if (!s->box->has_quota)
		question_end(q);
	else if (q->measured)
		d->disk_usage(d, &disk, disk_answered, q);
	else
		d->disk_sample(d, &disk, disk_answered, q);
}

static void usage_answered(void *arg, const struct warden_reply *reply)
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
		s->box->driver->usage(s->box->driver, s->id, usage_answered, q);
	else
		box_answer_later(s->box, none_answered, q, NULL);
}

/* ---- the history ---- */

static void sampler_fired(uv_timer_t *timer);

static struct sandbox **list_of(const struct sandbox *s)
{
	return &s->box->sampler.next[s->usage.pace == USAGE_SELDOM];
}

/* Puts it behind all that are sampled at its pace. */
static void usage_enlist(struct sandbox *s, int64_t now_us)
{
	struct usage_state *u = &s->usage;
	u->pace = u->idle ? USAGE_SELDOM : USAGE_OFTEN;
	u->due_us = now_us + (u->idle ? IDLE_MS : SAMPLE_MS) * INT64_C(1000);
	DL_APPEND2(*list_of(s), s, sampling_prev, sampling_next);
}

static void usage_delist(struct sandbox *s)
{
	if (s->usage.pace != USAGE_UNSAMPLED)
		DL_DELETE2(*list_of(s), s, sampling_prev, sampling_next);
	s->usage.pace = USAGE_UNSAMPLED;
}

static struct sandbox *first_due(const struct box *b)
{
	struct sandbox *often = b->sampler.next[0], *seldom = b->sampler.next[1];
	if (!often || !seldom)
		return often ? often : seldom;
	return often->usage.due_us <= seldom->usage.due_us ? often : seldom;
}

static void set_sampler(struct box *b, int64_t now_us)
{
	const struct sandbox *s = first_due(b);
	if (!s || b->closing)
		return;
	int64_t wait_ms =
		s->usage.due_us > now_us ? (s->usage.due_us - now_us) / 1000 + 1 : SAMPLE_SOON_MS;
	uv_timer_start(&b->sampler.timer, sampler_fired, (uint64_t)wait_ms, 0);
}

static void sampler_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	int64_t now = clock_monotonic_us();
	struct sandbox *s;
	for (int asked = 0; (s = first_due(b)) && s->usage.due_us <= now && asked < AT_ONCE;) {
		usage_delist(s);
		usage_enlist(s, now);
		if (!has_processes(s) || s->turn.taken)
			continue;
		asked++;
		b->driver->usage(b->driver, s->id, usage_answered, question_new(s, NULL, NULL));
	}
	set_sampler(b, now);
}

void usage_begin(struct sandbox *s)
{
	int64_t now = clock_monotonic_us();
	s->usage.disk = -1;
	usage_boot_began(&s->usage);
	usage_enlist(s, now);
	set_sampler(s->box, now);
}

void usage_stir(struct sandbox *s)
{
	struct usage_state *u = &s->usage;
	int64_t now = clock_monotonic_us();
	u->idle = false;
	if (u->pace != USAGE_SELDOM)
		return;
	if (u->sampled_us) {
		/* The sandbox did nothing until this moment. */
		struct usage_sample before = sample_of(s);
		remember_since(s, &before, now - u->sampled_us);
		add_memory(u, now, u->memory);
	}
	usage_delist(s);
	usage_enlist(s, now);
	set_sampler(s->box, now);
}

bool usage_is_stale(const struct sandbox *s)
{
	return s->usage.pace == USAGE_SELDOM;
}

void usage_end(struct sandbox *s)
{
	usage_delist(s);
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
