/*
 * Going on after a server that went away in the middle of a call and comes back: its sandboxes and
 * their processes live on without it.
 *
 * Only calls that know where they were, or that change nothing, are made again, and only if the
 * server was there at first: a connection that broke begins the time that a caller of
 * bunker_set_patience allows, and whatever progress ends it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bunker.h"

struct again {
	struct bunker *bunker;
	int64_t deadline_us; /* 0: the connection is not lost */
};

/* After a call that failed by *e: waits a moment, and is true if it is worth another try. */
bool client_again(struct again *a, const struct bunker_error *e);
/* Something came: the next loss has all the time. */
void client_again_progress(struct again *a);
