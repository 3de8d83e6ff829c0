/* Bytes into lines: NDJSON as it arrives, in whatever pieces. */
#pragma once

#include <stddef.h>

#include "base/buf.h"
#include "bunker.h"

/* Longer lines end the stream: a server that sends them is broken or hostile. */
#define LINES_MAX ((size_t)16 << 20)

typedef int lines_fn(void *arg, const char *line, size_t len, struct bunker_error *e);

struct lines {
	struct buf partial;
	lines_fn *take;
	void *arg;
};

/* Calls take for every line that is complete, without its newline; stops at the first failure. */
int client_lines_feed(struct lines *l, const char *data, size_t len, struct bunker_error *e);
void client_lines_finish(struct lines *l);
