#include "client/lines.h"

#include <string.h>

#include "client/failure.h"

static int keep_partial(struct lines *l, const char *data, size_t len, struct bunker_error *e)
{
	if (len > LINES_MAX - l->partial.len)
		return client_fail(e, BUNKER_INVALID_RESPONSE,
			"the server sent a line longer than %zu bytes", LINES_MAX);
	buf_append(&l->partial, data, len);
	return l->partial.failed ? client_fail(e, BUNKER_OUT_OF_MEMORY, "out of memory") : 0;
}

static int take_partial(struct lines *l, struct bunker_error *e)
{
	size_t len = l->partial.len;
	l->partial.len = 0;
	return len > 0 ? l->take(l->arg, l->partial.data, len, e) : 0;
}

int client_lines_feed(struct lines *l, const char *data, size_t len, struct bunker_error *e)
{
	while (len > 0) {
		const char *newline = memchr(data, '\n', len);
		size_t used = newline ? (size_t)(newline - data) : len;
		int r = keep_partial(l, data, used, e);
		if (r == 0 && newline)
			r = take_partial(l, e);
		if (r < 0)
			return r;
		used += newline != NULL;
		data += used;
		len -= used;
	}
	return 0;
}

void client_lines_finish(struct lines *l)
{
	buf_finish(&l->partial);
}
