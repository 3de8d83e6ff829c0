/* Answers OPTIONS for every known path, without admission and without a body. */
#include "http/connection.h"

static void answer_options(struct http_request *req)
{
	http_request_add_allow(req);
	http_respond(req, 204, NULL, NULL);
}

static const struct http_route options_routes[] = {{HTTP_OPTIONS, "/", answer_options}};
const struct http_mount http_options = {options_routes, 1};
