/* /v1/sandboxes: create, get, delete. */
#include "answer/json_body.h"
#include "answer/query.h"
#include "answer/records.h"
#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"
#include "op/life.h"

static const struct answer_records sandbox_records = {
	.table = &sandbox_model, .own = encode_sandbox_own};
const struct answer_form api_sandbox_form = {ANSWER_RECORD(&sandbox_records)};

static void handle_create_sandbox(struct http_request *req)
{
	struct error e = {0};
	struct op_create create = {0};
	struct answer *a = api_answer(req, &api_sandbox_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || decode_create(body, &a->call.memory, &create.spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_create(&a->call, &create);
	answer_run(a);
}

/*
 * A sandbox that ended by itself is shown for as long as it is known; a deleted one only on
 * request.
 */
static void handle_get_sandbox(struct http_request *req)
{
	struct error e;
	struct op_get get = {.ended = true};
	struct answer *a = api_answer(req, &api_sandbox_form);
	if (query_bool(req, "includeDeleted", &get.deleted, &e) < 0) {
		a->call.sandbox = NULL; /* it may be there, and have ended */
		answer_refuse(a, &e);
		return;
	}
	a->op = op_get(&a->call, &get);
	answer_run(a);
}

static void handle_delete_sandbox(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct answer *a = api_answer(req, &form);
	a->status = 204;
	a->op = op_delete(&a->call);
	answer_run(a);
}

static const struct http_route sandbox_routes[] = {
	{HTTP_POST, "/v1/sandboxes", handle_create_sandbox, BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}", handle_get_sandbox, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}", handle_delete_sandbox, 0},
};

const struct route_table sandbox_table = ROUTE_TABLE(sandbox_routes);
