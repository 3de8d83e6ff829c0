/* Commands of a sandbox, or its jobs, those that run first. */
#pragma once

#include "dialect/agentuity/routes.h"

typedef void execution_put_fn(
	struct json_writer *w, const struct http_request *req, const struct execution_view *view);
/* Answers with {KEY: […]}, as many as ?limit= says, each of them as `put` writes it. */
void execution_list_respond(struct http_request *req, const char *sandbox_id, const char *key,
	enum execution_kind kind, execution_put_fn *put);
