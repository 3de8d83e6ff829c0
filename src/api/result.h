/*
 * An execution's end as an answer. Long output is not collected for it: it is read from the spool
 * while the client takes it, so that many answers at once cost little memory.
 */
#pragma once

#include "api/routes.h"

/* Takes the copies. */
void respond_result(struct http_request *req, const struct execution_view *view,
	struct output_copy copies[EXECUTION_STREAMS], bool base64);
