/* Query parameters of several resources: how long to wait, which page of a list. */
#pragma once

#include "answer/records.h"
#include "api/routes.h"

/* ?wait=DURATION, at most 10m; 0 when it is absent. */
int api_parse_wait(const struct http_request *req, int64_t *ms, struct error *e);
/* A page of a list: ?limit= rows, behind ?cursor=TIME-ID. */
struct api_page {
	int64_t limit;
	int64_t before_ms; /* 0: from the newest */
	char before_id[ID_SIZE];
};
int api_parse_page(const struct http_request *req, struct api_page *ret, struct error *e);
/* For the `rest` of a list: where the next page begins, if there is one. */
void api_put_next(struct answer *a, struct json_writer *w, const struct op_event *event);
