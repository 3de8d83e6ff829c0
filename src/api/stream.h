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

#include "api/routes.h"

enum stream_format {
	STREAM_NONE, /* one JSON answer at the end */
	STREAM_NDJSON,
	STREAM_SSE
};

/* The `own` of the form's answers. */
struct stream {
	enum stream_format format;
	bool base64;
	uint64_t position[EXECUTION_STREAMS]; /* the next byte's */
	struct buf carry[EXECUTION_STREAMS];  /* the beginning of a character */
};

extern const struct answer_form stream_form;

enum stream_format stream_format_of(const char *accept);
const char *stream_content_type(enum stream_format format);
void stream_begin(struct answer *a, enum stream_format format);
