/* Server-sent events, the lines of text/event-stream. */
#pragma once

#include <stddef.h>

#include "base/buf.h"

struct http_request;

/* Proxies give up on connections that are quiet for a minute, some for half of that. */
#define SSE_KEEPALIVE    ":\n\n"
#define SSE_KEEPALIVE_MS 15000

/*
 * One event; name and id may be NULL. Its data is one line, such as JSON, that is appended in
 * between.
 */
void sse_begin(struct buf *out, const char *name, const char *id);
void sse_end(struct buf *out);
/* Has comments sent while the stream is quiet. */
void sse_keep_alive(struct http_request *req);
