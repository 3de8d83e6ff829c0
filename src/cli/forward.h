/* A port of this machine whose connections lead into a sandbox. */
#pragma once

#include "bunker.h"

/*
 * Listens on `where`, "[ADDRESS:]PORT", says so on stdout, and passes each connection on to the
 * sandbox's port, until SIGINT or SIGTERM. Returns 0, -1 with *e, JOB_SAID or JOB_MISUSED.
 */
int cli_forward_run(struct bunker *b, const char *sandbox, int64_t port, const char *where,
	struct bunker_error *e);
