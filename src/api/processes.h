/* What jobs and processes share. */
#pragma once

#include "api/routes.h"

/* Starts what the body describes; `started` answers once it runs, or has ended without having run.
 */
void processes_start(struct http_request *req, enum execution_kind kind,
	void (*started)(struct http_request *req, struct execution *x));
