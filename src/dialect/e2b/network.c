/* PUT /sandboxes/{id}/network: what it may reach from now on; what is not said is cleared. */
#include "answer/json_body.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/aliases.h"
#include "op/life.h"

static void handle_network(struct http_request *req)
{
	struct error e = {0};
	struct answer *a = e2b_usable_answer(req, &e2b_nothing_form);
	const cJSON *body = answer_json(a, &e);
	struct op_network request = {.is_wish = true};
	const cJSON *internet = cJSON_GetObjectItemCaseSensitive(body, "allow_internet_access");
	if (!body ||
		e2b_decode_network(body, internet, &a->call.memory, &request.network, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 204;
	a->op = op_set_network(&a->call, &request);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_PUT, "/sandboxes/{id}/network", handle_network, E2B_BODY_LIMIT},
};

const struct route_table e2b_network_table = ROUTE_TABLE(routes);
