/*
 * The times of a sandbox. They are kept in a time that no step of the wall clock moves: that of the
 * start, and how long ago that was. Only what is shown and stored is wall time (lease_wall_ms), and
 * only a start reads it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "box/sandbox/event.h"
#include "model/sandbox.h"

struct box;
struct sandbox;

/* At the start, before anything is loaded. */
void lease_start_clock(struct box *b);
int64_t lease_now_ms(const struct box *b);
/* A moment of that time as wall time; 0, which is never, stays so. */
int64_t lease_wall_ms(const struct box *b, int64_t at_ms);
/* Every few seconds: notices that the wall clock was set, and stores the times of sandboxes anew.
 */
void lease_check_clock(struct box *b);

struct deadline {
	int64_t at_ms; /* 0: never */
	enum sandbox_expiry then;
	enum event_cause cause;
};

/* The next one; with `end_only` what merely pauses it is passed over. */
struct deadline lease_next(const struct sandbox *s, bool end_only);
/* When the clock has to do something about it; 0: never. */
int64_t lease_due_ms(const struct sandbox *s);
void lease_set_clock(struct box *b, int64_t at_ms);
/* Recomputes the deadlines after a change of what they depend on. */
void sandbox_clock_changed(struct sandbox *s);
/* Begins the lease anew, now. */
void sandbox_renew_lease(struct sandbox *s);
