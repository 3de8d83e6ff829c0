/* Commands of a sandbox, or its jobs, those that run first. */
#pragma once

#include "dialect/agentuity/routes.h"

typedef void execution_put_fn(
	struct json_writer *w, const struct http_request *req, const struct execution_view *view);
/*
 * Answers with {KEY: […]} of the sandbox that {id} names, as many as ?limit= says, each of them as
 * `put` writes it. gone: also of a sandbox that is gone.
 */
void execution_list_run(struct http_request *req, const char *key, enum execution_kind kind,
	bool gone, execution_put_fn *put);
