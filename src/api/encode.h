/* The core's views as JSON, where a table alone does not say it. */
#pragma once

#include "json/json.h"
#include "model/sandbox.h"

/* Milliseconds with three digits of the microseconds behind. */
void encode_milliseconds(struct json_writer *w, const char *key, int64_t us);
/* The rows of sandbox_model that are no member: its volumes. The record is a sandbox_view. */
void encode_sandbox_own(struct json_writer *w, const struct field *f, const void *record);
void encode_output(struct json_writer *w, const char *key, const struct buf *bytes, bool base64);
