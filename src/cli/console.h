/* A process at our own terminal, or at our pipes. */
#pragma once

#include "cli/arguments.h"

struct console {
	const char *sandbox; /* its id */
	const char *process;
	bool terminal;   /* the process has one: ours is raw meanwhile, and ~. detaches */
	bool with_input; /* our stdin is for it */
	int64_t offset;  /* of its output, from where on; negative: so many of the last bytes */
};

/* The size of our terminal; 24 and 80 when there is none. */
void cli_console_size(unsigned *rows, unsigned *columns);

#define CONSOLE_DETACHED (-1)
/*
 * Until the process ends: its exit status. Or until the user detaches: CONSOLE_DETACHED. A server
 * that goes away is looked for again for a while. Says on stderr what went wrong.
 */
int cli_console_run(const struct arguments *args, struct bunker *b, const struct console *console);
