/* Requests that wait for an execution or a sandbox, and executions that end when none does. */
#pragma once

#include "dialect/agentuity/routes.h"
#include "handler/waiting.h"

/*
 * From now on it is cancelled when nobody has watched it for a second: the SDK has no call that
 * cancels, it drops its connections. Whoever long-polls or reads its streams watches.
 */
void waiting_guard(struct agentuity *d, struct execution *x);
/* Guards those that an earlier server did: their waiters have a minute to come back. */
void waiting_start(struct agentuity *d);
/* Takes all guards off. */
void waiting_stop(struct agentuity *d);

/* When it has ended, or after so long; 0: at once. */
static inline void waiting_for_end(
	struct http_request *req, struct execution *x, int64_t ms, handler_execution_fn *then)
{
	handler_await_end(req, server_of(req)->loop, x, ms, then);
}

/* Whether the wait is over, with a view of how it is now. */
typedef bool waiting_status_fn(const struct http_request *req, const struct sandbox_view *view);
/* view is NULL when there is no such sandbox. */
typedef void waiting_viewed_fn(struct http_request *req, const struct sandbox_view *view);
/*
 * The sandbox of this id, which may have ended, as soon as it is as `over` wants it, or after so
 * long.
 */
void waiting_for_sandbox(struct http_request *req, const char *id, int64_t ms,
	waiting_status_fn *over, waiting_viewed_fn *then);
