/* How far a copy is: one line on stderr that is written again and again, when stderr is a terminal.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool shown;
	const char *what;
	uint64_t total; /* bytes; 0: not known */
	uint64_t done;
	int64_t began_us, drawn_us;
};

void cli_progress_begin(struct progress *p, const char *what, uint64_t total, bool quiet);
void cli_progress_add(struct progress *p, uint64_t bytes);
/* Takes the line away. */
void cli_progress_end(struct progress *p);
