/*
 * A sandbox's events, read from the store behind the last one that was told, whenever the caller
 * takes more and whenever there is news. So nothing is missed or told twice, and a slow caller
 * costs nothing.
 */
#include "op/history.h"

#include <stdio.h>

#include "box/sandbox/event.h"
#include "op/op_core.h"

#define PAGE 500 /* events that the store is asked for at once */

struct history_op {
	struct op op;
	struct op_history request; /* `after` moves on with what was told */
	struct event_watcher watcher;
	unsigned told, asked;
	bool watching;
	bool news;  /* the store may have events that were not told */
	bool ended; /* the sandbox's last event was told */
};

static void history_read(struct history_op *h);

static bool history_is_complete(const struct history_op *h)
{
	if (h->request.follow)
		return h->ended;
	return !h->news || (h->request.limit && h->told == h->request.limit);
}

/* Tells what follows from the page that was read. */
static void history_advance(struct history_op *h)
{
	struct op *op = &h->op;
	if (history_is_complete(h))
		op_done(op, &(struct op_event){.kind = OP_DONE, .result.count = h->told});
	else if (!h->request.follow || op_emit(op, &(struct op_event){.kind = OP_IDLE}))
		if (h->news && !op->paused)
			history_read(h);
}

static void history_listed(void *arg, const struct event_view *events, size_t count)
{
	struct history_op *h = arg;
	struct op *op = &h->op;
	struct error e;
	if (!op_awaited(op))
		return;
	if (!events) {
		error_set(&e, ERROR_INTERNAL, "the events could not be read");
		op_fail(op, OP_ERROR, &e);
		return;
	}
	h->news |= count == h->asked;
	for (size_t i = 0; i < count; i++) {
		h->request.after = events[i].number;
		h->told++;
		h->ended |= event_is_last(events[i].type);
		if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .happened = &events[i]}))
			return;
		if (op->paused) {
			h->news = true;
			return;
		}
	}
	history_advance(h);
}

static void history_read(struct history_op *h)
{
	const struct op_history *r = &h->request;
	unsigned left = r->limit ? r->limit - h->told : PAGE;
	h->news = false;
	h->asked = left < PAGE ? left : PAGE;
	op_await(&h->op);
	event_list(h->op.ops->box, h->op.tenant, h->op.sandbox, r->after, r->backwards, h->asked,
		history_listed, h);
}

static void history_changed(void *arg)
{
	struct history_op *h = arg;
	h->news = true;
	if (!h->op.paused && !h->op.awaits)
		history_read(h);
}

static void history_watch(struct history_op *h)
{
	h->watching = true;
	h->watcher = (struct event_watcher){.changed = history_changed, .arg = h};
	snprintf(h->watcher.sandbox, sizeof h->watcher.sandbox, "%s", h->op.sandbox);
	event_watch(h->op.ops->box, &h->watcher);
}

static void history_resume(struct op *op)
{
	struct history_op *h = (struct history_op *)op;
	if (h->request.follow && !h->watching) {
		history_watch(h);
		if (!op_emit(op, &(struct op_event){.kind = OP_READY}) || op->paused)
			return;
	}
	if (history_is_complete(h))
		op_done(op, &(struct op_event){.kind = OP_DONE, .result.count = h->told});
	else if (h->news)
		history_read(h);
}

static void history_release(struct op *op, enum op_end end)
{
	struct history_op *h = (struct history_op *)op;
	(void)end;
	if (h->watching)
		event_unwatch(op->ops->box, &h->watcher);
}

struct op *op_history(const struct op_call *call, const struct op_history *request)
{
	static const struct op_type type = {
		"history", .resume = history_resume, .release = history_release};
	struct sandbox *s;
	struct history_op *h = (struct history_op *)op_new(call, &type, sizeof *h, &s);
	h->request = *request;
	h->news = true;
	op_has_begun(&h->op);
	return &h->op;
}
