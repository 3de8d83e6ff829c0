/*
 * A running execution as a stream of events, one JSON object each:
 *
 *     {"type":"start","executionId","sandboxId","pid"}
 *     {"type":"stdout"|"stderr","offset":N,"data":"…"}
 *     {"type":"truncated","stream":"stdout"|"stderr","from":N,"to":N}   bytes that were not kept
 *     {"type":"exit", and the result without its output}
 *
 * As NDJSON a line each; as SSE "event: TYPE" and "data: OBJECT".
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "box/execution.h"

enum stream_format {
	STREAM_NONE, /* one JSON answer at the end */
	STREAM_NDJSON,
	STREAM_SSE
};

struct stream {
	enum stream_format format;
	bool base64;
	bool announced;
	bool failed; /* the spool could not be read: the stream must end as one that was cut short
		      */
	bool stops;  /* at `until`, without an exit, if it still runs then */
	uint64_t until[EXECUTION_STREAMS];
	struct buf carry[EXECUTION_STREAMS]; /* the beginning of a character */
};

enum stream_format stream_format_of(const char *accept);
const char *stream_content_type(enum stream_format format);
/* Appends the events there are; true when the last one is among them. */
bool stream_collect(
	struct stream *s, struct execution *x, struct execution_watcher *w, struct buf *out);
void stream_finish(struct stream *s);
