/* The core's views as Agentuity's objects. */
#pragma once

#include "dialect/agentuity/routes.h"

/* Its status; one that is made for one command is never idle. */
const char *agentuity_status(const struct sandbox_view *view);
/* What lists answer. */
void agentuity_put_sandbox(struct json_writer *w, const struct sandbox_view *view);
/* The same without braces. */
void agentuity_put_sandbox_fields(struct json_writer *w, const struct sandbox_view *view);
/* Why it did not end by itself, as a sentence; NULL: it did. */
const char *agentuity_failure(const struct execution_view *view);
/* The fields of an execution, without braces; ignores: of which streams no address is wanted, or
 * NULL. */
void agentuity_put_execution(struct json_writer *w, const struct http_request *req,
	const struct execution_view *view, const bool ignores[2]);
/* NULL-terminated strings one behind the other, as an array. */
void agentuity_put_list(struct json_writer *w, const char *key, const char *list, size_t len);
