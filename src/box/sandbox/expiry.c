/*
 * Sandboxes whose time is up: they are destroyed, paused or suspended. The clock may have been set
 * for one that has got more time meanwhile, so all are checked and it is set again.
 */
#include "box/sandbox/expiry.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/ending.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/object.h"
#include "box/sandbox/pause.h"

/* A pause that did not work is tried again after this. */
#define RETRY_MS 5000

struct expired {
	struct box *box;
	char id[ID_SIZE];
};

static void expiry_paused(void *arg, const struct error *e)
{
	struct expired *x = arg;
	struct sandbox *s = sandbox_find_any(x->box, x->id);
	if (s) {
		s->lease.expiring = false;
		s->lease.retry_ms = e ? lease_now_ms(x->box) + RETRY_MS : 0;
		sandbox_clock_changed(s);
	}
	if (e)
		log_warn("a sandbox whose time is up could not be paused", "sandbox", x->id,
			"error", e->message);
	free(x);
}

static void expiry_carry_out(struct sandbox *s)
{
	struct deadline d = lease_next(s, false);
	log_info("a sandbox's time is up", "sandbox", s->id, "cause", event_cause_name(d.cause),
		"then", sandbox_expiry_names[d.then]);
	if (d.then == EXPIRY_DESTROY) {
		sandbox_terminate(s, d.cause);
		return;
	}
	struct expired *x = mem_new(sizeof *x);
	x->box = s->box;
	memcpy(x->id, s->id, ID_SIZE);
	s->lease.expiring = true;
	sandbox_pause_because(s, d.then == EXPIRY_PAUSE, d.cause, expiry_paused, x);
}

void expiry_check(struct box *b)
{
	int64_t now = lease_now_ms(b), earliest = 0;
	struct sandbox *s, *next;
	DL_FOREACH_SAFE (b->sandboxes.order, s, next) {
		int64_t due = lease_due_ms(s);
		if (due && due <= now)
			expiry_carry_out(s);
		else if (due && (earliest == 0 || due < earliest))
			earliest = due;
	}
	if (earliest && (b->clock.due_ms == 0 || earliest < b->clock.due_ms))
		lease_set_clock(b, earliest);
}
