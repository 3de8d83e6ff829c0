/* Which execution a request is about, and what several resources do with it. */
#pragma once

#include "api/routes.h"
#include "handler/waiting.h"

/*
 * The execution that the path names: {id} alone by its id; of a sandbox {id} the {process} by its
 * id, pid or name, or the {job} by its id or name. In memory or from the store, also of a sandbox
 * that is gone. `found` is called once, now or later, unless the request was answered with
 * not_found or its client has gone; then x lives as long as it is watched.
 */
void api_find_execution(struct http_request *req, handler_execution_fn *found);

/* ?wait=DURATION, at most 10m; 0 when it is absent. */
int api_parse_wait(const struct http_request *req, int64_t *ms, struct error *e);
/*
 * Calls `then` when x has ended, or after so long, and not at all when the client goes away
 * meanwhile. ms 0: at once.
 */
void api_wait_for_end(
	struct http_request *req, struct execution *x, int64_t ms, handler_execution_fn *then);

/* How many to list: ?limit=, and from where: ?cursor=TIME-ID. */
struct api_page {
	int64_t limit;
	int64_t before_ms; /* 0: from the newest */
	char before_id[ID_SIZE];
};
int api_parse_page(const struct http_request *req, struct api_page *ret, struct error *e);
void api_put_cursor(struct json_writer *w, int64_t ms, const char *id);
