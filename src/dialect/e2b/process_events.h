/* The events that Start and Connect stream, each in its envelope. */
#pragma once

#include "dialect/e2b/process.h"

#define PROCESS_KEEPALIVE "{\"event\":{\"keepalive\":{}}}"
#define PROCESS_DATA_MAX  (32u * 1024) /* of output in one event */

void process_put_start(struct buf *out, int32_t pid);
void process_put_data(struct buf *out, const char *stream, const struct buf *data);
void process_put_end(struct buf *out, const struct execution_view *view);
/* stdout, stderr or pty */
const char *process_stream_name(bool terminal, unsigned index);
