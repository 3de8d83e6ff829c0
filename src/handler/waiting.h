/* Requests about an execution, which may have to be loaded, or waited for. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "box/process/execution.h"
#include "http/http.h"

/* x lives as long as it is watched, at least until this returns. */
typedef void handler_execution_fn(struct http_request *req, struct execution *x);

/* Which one: NULL and 0 are any, but for the id. */
struct wanted_execution {
	struct box *box;
	const char *tenant, *sandbox_id, *id;
	unsigned kinds; /* 1u << enum execution_kind */
};

/*
 * In memory or from the store, now or later: calls `found`, or `missing` when there is none.
 * Neither when the client goes away meanwhile.
 */
void handler_find_execution(struct http_request *req, const struct wanted_execution *query,
	handler_execution_fn *found, void (*missing)(struct http_request *req));

/* When it has ended, or after so long; 0: at once. Not when the client goes away meanwhile. */
void handler_await_end(struct http_request *req, uv_loop_t *loop, struct execution *x, int64_t ms,
	handler_execution_fn *then);
