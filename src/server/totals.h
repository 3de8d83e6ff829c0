/* The limits of all sandboxes of a server together, so that the host keeps something for itself. */
#pragma once

#include "server/config.h"
#include "wire/warden.h"

/* The size of the host; 0 is unknown. */
struct totals_host {
	int64_t memory, pids;
};

struct totals_host totals_of_host(void);
/* As the options say, or, where they are 0, less a reserve than the host has. */
struct warden_limits totals_settle(const struct config *c, const struct totals_host *host);
