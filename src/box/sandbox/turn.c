/*
 * Operations of the life cycle that take time (a creation, a pause, a resume, work on the disk)
 * have a sandbox to themselves, one after the other in the order in which they were asked for. A
 * delete waits only for the one that is under way; those behind it are refused.
 */
#include "box/sandbox/turn.h"

#include <stdlib.h>
#include <utlist.h>

#include "base/mem.h"
#include "box/sandbox/ending.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

struct turn_waiter {
	struct turn_waiter *prev, *next;
	const void *caller; /* by which it is withdrawn */
	sandbox_turn_fn *granted;
	void *arg;
};

/* How many operations may wait for one sandbox. */
#define TURN_WAITERS_MAX 1024

static void turn_refuse(struct sandbox *s, sandbox_turn_fn *granted, void *arg)
{
	struct error e;
	if (s->ending.doomed)
		error_set(&e, ERROR_NOT_FOUND, "the sandbox is being deleted");
	else
		error_set(&e, ERROR_RESOURCE_EXHAUSTED,
			"%d operations wait for this sandbox already", TURN_WAITERS_MAX);
	granted(arg, s, &e);
}

void sandbox_take_turn(struct sandbox *s, sandbox_turn_fn *granted, void *arg)
{
	sandbox_take_turn_for(s, arg, granted, arg);
}

void sandbox_take_turn_for(
	struct sandbox *s, const void *caller, sandbox_turn_fn *granted, void *arg)
{
	if (s->ending.doomed || s->turn.waiting_count == TURN_WAITERS_MAX) {
		turn_refuse(s, granted, arg);
		return;
	}
	if (!s->turn.taken && !s->turn.waiting) {
		s->turn.taken = true;
		granted(arg, s, NULL);
		return;
	}
	struct turn_waiter *w = mem_new(sizeof *w);
	w->caller = caller;
	w->granted = granted;
	w->arg = arg;
	DL_APPEND(s->turn.waiting, w);
	s->turn.waiting_count++;
}

static struct turn_waiter turn_remove(struct sandbox *s, struct turn_waiter *w)
{
	struct turn_waiter removed = *w;
	DL_DELETE(s->turn.waiting, w);
	free(w);
	s->turn.waiting_count--;
	return removed;
}

/* An operation that has nothing to do releases at once, in the middle of this: no recursion. */
void sandbox_release(struct sandbox *s)
{
	struct box *b = s->box;
	s->turn.taken = false;
	if (s->turn.granting)
		return;
	s->turn.granting = true;
	while (!s->turn.taken && !s->ending.doomed && s->turn.waiting) {
		struct turn_waiter w = turn_remove(s, s->turn.waiting);
		s->turn.taken = true;
		w.granted(w.arg, s, NULL);
	}
	s->turn.granting = false;
	if (s->ending.doomed && !s->turn.taken)
		sandbox_end_now(s);
	box_check_closed(b);
}

void sandbox_refuse_turns(struct sandbox *s)
{
	while (s->turn.waiting) {
		struct turn_waiter w = turn_remove(s, s->turn.waiting);
		turn_refuse(s, w.granted, w.arg);
	}
}

bool sandbox_withdraw_turn(struct sandbox *s, const void *caller)
{
	struct turn_waiter *w = s->turn.waiting;
	struct error e;
	while (w && w->caller != caller)
		w = w->next;
	if (!w)
		return false;
	struct turn_waiter removed = turn_remove(s, w);
	error_set(&e, ERROR_NOT_RUNNING, "the operation was withdrawn before it began");
	removed.granted(removed.arg, s, &e);
	return true;
}
