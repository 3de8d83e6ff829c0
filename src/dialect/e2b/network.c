/* PUT /sandboxes/{id}/network: nothing can be set but what is the case anyway. */
#include "answer/json_body.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/encode.h"
#include "op/life.h"

static void handle_network(struct http_request *req)
{
	struct error e = {0};
	struct answer *a = e2b_usable_answer(req, &e2b_nothing_form);
	const cJSON *body = answer_json(a, &e);
	if (!body || e2b_check_network(body, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 204;
	a->op = op_get(&a->call, &(struct op_get){0});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_PUT, "/sandboxes/{id}/network", handle_network, E2B_BODY_LIMIT},
};

const struct route_table e2b_network_table = ROUTE_TABLE(routes);
