/* What several resources have in their queries: how long to wait, which page of a list. */
#pragma once

#include "api/routes.h"

/* ?wait=DURATION, at most 10m; 0 when it is absent. */
int api_parse_wait(const struct http_request *req, int64_t *ms, struct error *e);
/* How many to list: ?limit=, and from where: ?cursor=TIME-ID. */
struct api_page {
	int64_t limit;
	int64_t before_ms; /* 0: from the newest */
	char before_id[ID_SIZE];
};
int api_parse_page(const struct http_request *req, struct api_page *ret, struct error *e);
void api_put_cursor(struct json_writer *w, int64_t ms, const char *id);
