/* The core's views as JSON. */
#pragma once

#include "model/execution.h"
#include "model/sandbox.h"
#include "json/json.h"
#include "model/snapshot.h"

/* Milliseconds with three digits of the microseconds behind. */
void encode_milliseconds(struct json_writer *w, const char *key, int64_t us);
void encode_sandbox(struct json_writer *w, const struct sandbox_view *view);
/* A snapshot's fields, without braces. */
void encode_snapshot(struct json_writer *w, const struct snapshot_view *view);
/* The fields of a result, without braces; output follows by encode_output. */
void encode_execution(struct json_writer *w, const struct execution_view *view);
/* A process's fields, without braces. */
void encode_process(struct json_writer *w, const struct execution_view *view);
/* What one that runs uses now; its fields, without braces. */
void encode_usage(struct json_writer *w, const struct execution_usage *usage);
void encode_output(struct json_writer *w, const char *key, const struct buf *bytes, bool base64);
