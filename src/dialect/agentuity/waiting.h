/* Requests that wait for an execution, and executions that end when none does. */
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
