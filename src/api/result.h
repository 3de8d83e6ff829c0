/* An execution's end as an answer. */
#pragma once

#include "api/routes.h"

struct execution_result {
	const struct execution_view *view;
	const struct buf *output; /* EXECUTION_STREAMS of them */
	bool base64;
};

void respond_result(struct http_request *req, const struct execution_result *result);
/* Everything that is kept of a live execution's output. */
void read_all_output(struct execution *x, struct buf output[EXECUTION_STREAMS]);
