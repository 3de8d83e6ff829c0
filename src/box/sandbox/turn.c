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

struct claim {
	struct claim *prev, *next;
	sandbox_claimed_fn *claimed;
	void *arg;
};

/* How many may wait for one sandbox. */
#define CLAIMS_MAX 1024

static void turn_refuse(struct sandbox *s, sandbox_claimed_fn *claimed, void *arg)
{
	struct error e;
	if (s->ending.doomed)
		error_set(&e, ERROR_NOT_FOUND, "the sandbox is being deleted");
	else
		error_set(&e, ERROR_RESOURCE_EXHAUSTED,
			"%d operations wait for this sandbox already", CLAIMS_MAX);
	claimed(arg, s, &e);
}

void sandbox_claim(struct sandbox *s, sandbox_claimed_fn *claimed, void *arg)
{
	if (s->ending.doomed || s->turn.waiting_count == CLAIMS_MAX) {
		turn_refuse(s, claimed, arg);
		return;
	}
	if (!s->turn.taken && !s->turn.waiting) {
		s->turn.taken = true;
		claimed(arg, s, NULL);
		return;
	}
	struct claim *c = mem_new(sizeof *c);
	c->claimed = claimed;
	c->arg = arg;
	DL_APPEND(s->turn.waiting, c);
	s->turn.waiting_count++;
}

static struct claim take_claim(struct sandbox *s)
{
	struct claim *first = s->turn.waiting, taken = *first;
	DL_DELETE(s->turn.waiting, first);
	free(first);
	s->turn.waiting_count--;
	return taken;
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
		struct claim c = take_claim(s);
		s->turn.taken = true;
		c.claimed(c.arg, s, NULL);
	}
	s->turn.granting = false;
	if (s->ending.doomed && !s->turn.taken)
		sandbox_end_now(s);
	box_check_closed(b);
}

void sandbox_refuse_claims(struct sandbox *s)
{
	while (s->turn.waiting) {
		struct claim c = take_claim(s);
		turn_refuse(s, c.claimed, c.arg);
	}
}

bool sandbox_withdraw_claim(struct sandbox *s, const void *arg)
{
	struct claim *c = s->turn.waiting;
	struct error e;
	while (c && c->arg != arg)
		c = c->next;
	if (!c)
		return false;
	struct claim taken = *c;
	DL_DELETE(s->turn.waiting, c);
	free(c);
	s->turn.waiting_count--;
	error_set(&e, ERROR_NOT_RUNNING, "the operation was withdrawn before it began");
	taken.claimed(taken.arg, s, &e);
	return true;
}
