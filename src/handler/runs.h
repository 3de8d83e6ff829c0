/*
 * A run of code whose events are the answer, at the pace of its reader. A client that goes away
 * interrupts its run.
 */
#pragma once

#include "box/code/code.h"
#include "http/http.h"

/* How a client is told. */
struct run_form {
	/* http_stream_begin, with what goes in front, and what keeps it alive. */
	void (*begin)(struct http_request *req, const struct http_generator *generator);
	/* Every event but CODE_EVENT_LOST; output comes by whole characters, and is never empty. */
	void (*put)(const struct run_form *form, const struct code_event *event, struct buf *out);
};

/* `changed` and `arg` of the spec are set here. On failure nothing was answered. */
int handler_run_code(struct http_request *req, struct code_context *c,
	const struct code_run_spec *spec, const struct run_form *form, struct error *e);
