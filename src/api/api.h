/*
 * The native REST API. One file per resource, each with its route table; api/openapi.yaml describes
 * the same routes, and a test compares the two.
 */
#pragma once

#include "http/auth.h"
#include "box/box.h"
#include "http/http.h"

struct ops;

struct api {
	struct box *box;
	struct ops *ops;
	struct auth *auth;
	struct http_server *server; /* for its counters; NULL until it is open */
	uv_loop_t *loop;
	const char *domain;
};

#define API_MOUNTS 33

/* Everything that is served under /v1, /health and /metrics. */
void api_mounts(struct api *api, struct http_mount out[API_MOUNTS]);

/* Every route there is, for the test; NULL pattern ends. */
const struct http_route *api_route_at(size_t index);
