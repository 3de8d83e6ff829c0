/* /v1/sandboxes/{id}/network: what it may reach, as a whole. */
#include "answer/json_body.h"
#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"
#include "op/life.h"

static int network_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	json_encode_object(&w, &network_model, &event->sandbox->network, NULL);
	return 0;
}

static const struct answer_form network_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = network_put};

static void handle_get_network(struct http_request *req)
{
	struct answer *a = api_answer(req, &network_form);
	a->op = op_get(&a->call, &(struct op_get){0});
	answer_run(a);
}

static void handle_put_network(struct http_request *req)
{
	struct error e = {0};
	struct op_network request = {0};
	struct answer *a = api_answer(req, &network_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || decode_network(body, &a->call.memory, &request.network, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_set_network(&a->call, &request);
	answer_run(a);
}

static const struct http_route network_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/network", handle_get_network, 0},
	{HTTP_PUT, "/v1/sandboxes/{id}/network", handle_put_network, BODY_LIMIT},
};

const struct route_table network_table = ROUTE_TABLE(network_routes);
