/*
 * Watchers of an execution's output: from which byte each reads, and which one the process waits
 * for: the slowest of those that pace it. Output without a pacing watcher is kept up to the limit
 * and then only counted.
 */
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "box/process/execution_core.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"

void execution_notify(struct execution *x)
{
	struct execution_watcher *w, *next;
	DL_FOREACH_SAFE (x->watchers, w, next)
		w->changed(w->arg);
}

static uint64_t slowest_position(const struct execution *x, unsigned stream)
{
	uint64_t slowest = UINT64_MAX;
	const struct execution_watcher *w;
	DL_FOREACH (x->watchers, w)
		if (w->paced && !w->ignores[stream] && w->position[stream] < slowest)
			slowest = w->position[stream];
	return slowest;
}

bool execution_is_paced(const struct execution *x, unsigned stream)
{
	return slowest_position(x, stream) != UINT64_MAX;
}

void execution_acknowledge(struct execution *x, unsigned stream)
{
	uint64_t offset = output_release(&x->outputs[stream], slowest_position(x, stream));
	if (offset <= x->acked[stream])
		return;
	x->acked[stream] = offset;
	execution_send(x, FRAME_ACK, stream, offset, NULL, 0);
	execution_flush(x);
}

/* A stream that is open keeps its sandbox from being idle, also when the command has ended. */
static void count_reader(const struct execution *x, const struct execution_watcher *w, int change)
{
	struct sandbox *s = NULL;
	HASH_FIND(by_id, x->box->sandboxes.by_id, x->sandbox_id, ID_LEN, s);
	if (!s || !w->paced || x->interpreter)
		return;
	s->processes.readers += (unsigned)change;
	s->last_active_ms = lease_now_ms(s->box);
	sandbox_clock_changed(s);
}

void execution_watch(struct execution *x, struct execution_watcher *w)
{
	DL_APPEND(x->watchers, w);
	count_reader(x, w, 1);
}

/* Returns the only watcher that does not just glance; NULL: there are more, or none. */
static const struct execution_watcher *sole_attendant(const struct execution *x)
{
	const struct execution_watcher *w, *sole = NULL;
	DL_FOREACH (x->watchers, w) {
		if (w->glances)
			continue;
		if (sole)
			return NULL;
		sole = w;
	}
	return sole;
}

void execution_unwatch(struct execution *x, struct execution_watcher *w)
{
	DL_DELETE(x->watchers, w);
	count_reader(x, w, -1);
	for (unsigned i = 0; i < EXECUTION_STREAMS && !execution_is_drained(x); i++)
		execution_acknowledge(x, i);
	if (!execution_has_ended(x)) {
		const struct execution_watcher *last = w->glances ? NULL : sole_attendant(x);
		if (last && last->alone)
			last->alone(last->arg);
	}
	execution_free_if_unused(x);
}

bool execution_watched_by_none_but(const struct execution *x, const struct execution_watcher *w)
{
	return sole_attendant(x) == w;
}

bool execution_read(struct execution *x, struct execution_watcher *w, unsigned stream, size_t max,
	struct buf *out)
{
	int r = output_read(&x->outputs[stream], &w->position[stream], max, out);
	if (w->paced && w->position[stream] > x->seen[stream])
		x->seen[stream] = w->position[stream];
	if (!execution_is_drained(x))
		execution_acknowledge(x, stream);
	return r == 0;
}

void execution_arrived(const struct execution *x, uint64_t end[EXECUTION_STREAMS])
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		end[i] = x->outputs[i].end;
}

/* Clients of current watchers may have left without being noticed. */
void execution_seen(const struct execution *x, uint64_t position[EXECUTION_STREAMS])
{
	const struct execution_watcher *w;
	uint64_t arrived[EXECUTION_STREAMS];
	memcpy(position, x->seen, sizeof x->seen);
	DL_FOREACH (x->watchers, w) {
		if (!w->paced || !w->arrived)
			continue;
		w->arrived(w->arg, arrived);
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			if (!w->ignores[i] && arrived[i] < position[i])
				position[i] = arrived[i];
	}
}

void execution_unsee(struct execution *x, const uint64_t position[EXECUTION_STREAMS])
{
	const struct execution_watcher *w;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		uint64_t seen = position[i];
		DL_FOREACH (x->watchers, w)
			if (w->paced && !w->ignores[i] && w->position[i] > seen)
				seen = w->position[i];
		if (seen < x->seen[i])
			x->seen[i] = seen;
	}
}

void execution_copy_output(const struct execution *x, struct output_copy copies[EXECUTION_STREAMS])
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		output_copy(&x->outputs[i], &copies[i]);
}
