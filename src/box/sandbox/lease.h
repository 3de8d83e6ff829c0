/* The times of a sandbox. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "box/sandbox/event.h"
#include "model/sandbox.h"

struct box;
struct sandbox;

struct deadline {
	int64_t at_ms; /* 0: never */
	enum sandbox_expiry then;
	enum event_cause cause;
};

/* The next one; with `end_only` what merely pauses it is passed over. */
struct deadline lease_next(const struct sandbox *s, bool end_only);
/* When the clock has to do something about it; 0: never. */
int64_t lease_due_ms(const struct sandbox *s);
void lease_set_clock(struct box *b, int64_t at_ms, int64_t now_ms);
/* What its time depends on has changed. */
void sandbox_clock_changed(struct sandbox *s);
/* When its time is up, and when that ends it, as things are; 0: never. */
int64_t sandbox_expires_ms(const struct sandbox *s);
int64_t sandbox_terminates_ms(const struct sandbox *s);
/* It begins anew, now. */
void sandbox_renew_lease(struct sandbox *s);
