/*
 * The command that exec waits for, and what becomes of it when nobody waits any more.
 *
 * A signal that ends bunker leaves it running, and a line says how to come back to it or end it.
 * When what reads our output has gone, nobody will ever see the command's: it is ended.
 */
#pragma once

#include "base/id.h"
#include "bunker.h"

struct waiting {
	const char *target; /* the sandbox, as the user calls it */
	char sandbox[ID_SIZE], id[ID_SIZE];
	int64_t pid;
};

/* Takes a broken pipe as an error, not as our end. */
void cli_waiting_prepare(void);
/* arg is a struct waiting. From now on a signal that ends us says that the command goes on. */
bunker_started_fn cli_waiting_started;
/* The same line, of a signal that was taken otherwise. */
void cli_waiting_report(const struct waiting *w);
/* How to see more of a command whose server went away, if it runs at all. */
void cli_waiting_report_lost(const struct waiting *w, const struct bunker_error *e);
/* Nobody reads: SIGTERM to everything it started, and SIGKILL to what is left after a moment. */
void cli_waiting_kill(struct bunker *b, const struct waiting *w);
