/* PUT /sandboxes/{id}/network: nothing can be set but what is the case anyway. */
#include "dialect/e2b/decode.h"

static void handle_update(struct http_request *req)
{
	struct error e = {0};
	struct sandbox *s = e2b_sandbox(req);
	cJSON *body = s ? e2b_body(req) : NULL;
	if (!body)
		return;
	if (e2b_check_network(body, &e) < 0)
		http_respond_error(req, &e);
	else
		e2b_respond_nothing(req, 204);
	cJSON_Delete(body);
}

static const struct http_route routes[] = {
	{HTTP_PUT, "/sandboxes/{id}/network", handle_update, E2B_BODY_LIMIT},
};

const struct route_table e2b_network_table = ROUTE_TABLE(routes);
