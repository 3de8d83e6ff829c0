/* The sides that have privilege, put together: the warden, the keeper of its disks, bunker-wire. */
#pragma once

#include "keeper/keeper.h"
#include "netns/netns.h"
#include "server/config.h"
#include "warden/warden.h"

struct privileged {
	struct warden warden;
	struct keeper keeper;
	struct netns netns;
	bool warden_open, keeper_open, keeper_started;
};

/* Uses the data directory and the pool's options of the configuration. */
int privileged_open(struct privileged *p, const struct config *c, struct error *e);
void privileged_close(struct privileged *p);
/* For a trial, after privileged_close or a privileged_open that failed: the data directory goes. */
void privileged_discard(struct privileged *p, const char *data);
