/* /v1/sandboxes/{id}/contexts: what its files share. */
#pragma once

#include "api/routes.h"
#include "box/code/code.h"

/*
 * The context that the path names, by its id or, for a default one, by its language; NULL after the
 * request was answered.
 */
struct code_context *api_context(struct http_request *req);
