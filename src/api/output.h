/* Output from any byte on, as the request wants it: events, bytes, or a WebSocket. */
#pragma once

#include "api/routes.h"

/* GET …/output of the execution that the path names. */
void output_handle(struct http_request *req);

/* What ?offset=, ?stderrOffset=, ?stream=, ?encoding= and ?follow= ask for. */
struct output_query {
	uint64_t position[EXECUTION_STREAMS];
	bool ignores[EXECUTION_STREAMS];
	bool one;        /* a stream was named */
	bool own_stderr; /* an offset was given for each */
	bool follow, base64;
};
int output_parse_query(const struct http_request *req, const struct execution *x,
	struct output_query *ret, struct error *e);
/* The same as a WebSocket: output_socket.c. */
void output_attach_socket(
	struct http_request *req, struct execution *x, const struct output_query *query);
