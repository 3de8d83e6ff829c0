/*
 * Answers that must not come before the call has returned, and the wait of a close for what is
 * under way.
 */
#include "box/sandbox/later.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/mem.h"
#include "box/sandbox/object.h"

struct later {
	struct later *prev, *next;
	sandbox_done_fn *done;
	void *arg;
	bool failed;
	struct error error;
};

static void later_timer_fired(uv_timer_t *timer)
{
	struct box *b = timer->data;
	struct later *l;
	unsigned count = 0;
	DL_COUNT(b->later.first, l, count);
	/* Entries leave the list one at a time, because a close waits for the rest. */
	for (; count > 0 && (l = b->later.first); count--) {
		DL_DELETE(b->later.first, l);
		l->done(l->arg, l->failed ? &l->error : NULL);
		free(l);
	}
	/* With a delay of 0 the loop would not turn before these are called. */
	if (b->later.first)
		uv_timer_start(timer, later_timer_fired, 1, 0);
	box_check_closed(b);
}

void box_answer_later(struct box *b, sandbox_done_fn *done, void *arg, const struct error *e)
{
	struct later *l = mem_new(sizeof *l);
	l->done = done;
	l->arg = arg;
	if (e) {
		l->failed = true;
		l->error = *e;
	}
	DL_APPEND(b->later.first, l);
	uv_timer_start(&b->later.timer, later_timer_fired, 0, 0);
}

void box_check_closed(struct box *b)
{
	if (b->closing)
		b->hooks->check_closed(b);
}
