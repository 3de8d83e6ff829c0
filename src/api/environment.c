/*
 * /v1/sandboxes/{id}/env: the variables that everything started from now on begins with. What runs
 * keeps what it has.
 */
#include "answer/json_body.h"
#include "api/decode.h"
#include "api/routes.h"
#include "op/life.h"

static int environment_env_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	json_env(&w, event->sandbox->env.data, event->sandbox->env.len);
	return 0;
}

static const struct answer_form env_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = environment_env_put};

static void handle_get_env(struct http_request *req)
{
	struct answer *a = api_answer(req, &env_form);
	a->op = op_get(&a->call, &(struct op_get){0});
	answer_run(a);
}

static void handle_change_env(struct http_request *req)
{
	struct error e = {0};
	struct sandbox_change change = {0};
	struct answer *a = api_answer(req, &env_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || decode_env_change(body, &a->call.memory, &change, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_update(&a->call, &change);
	answer_run(a);
}

static const struct http_route environment_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/env", handle_get_env, 0},
	{HTTP_PATCH, "/v1/sandboxes/{id}/env", handle_change_env, BODY_LIMIT},
};

const struct route_table environment_table = ROUTE_TABLE(environment_routes);
