/* /v1/sandboxes/{id}/pause and /resume, and changes by PATCH. */
#include "answer/json_body.h"
#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"
#include "op/life.h"

struct pause_body {
	bool memory;
};

static const struct json_field pause_fields[] = {
	{"memory", FIELD_BOOL, offsetof(struct pause_body, memory), 0, 0, 0},
};

static struct op *begin_pause(const struct op_call *call, bool keep_memory)
{
	return op_pause(call, &(struct op_pause){.keep_memory = keep_memory});
}

static void lifecycle_handle(
	struct http_request *req, struct op *(*begin)(const struct op_call *call, bool keep_memory))
{
	struct error e = {0};
	struct pause_body body = {.memory = true};
	struct answer *a = api_answer(req, &api_sandbox_form);
	if (answer_decode_json(a, pause_fields, ARRAY_LEN(pause_fields), &body, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = begin(&a->call, body.memory);
	answer_run(a);
}

static void api_lifecycle_handle_pause(struct http_request *req)
{
	lifecycle_handle(req, begin_pause);
}

static void api_lifecycle_handle_resume(struct http_request *req)
{
	lifecycle_handle(req, op_resume_sandbox);
}

static void api_lifecycle_handle_update(struct http_request *req)
{
	struct error e = {0};
	struct sandbox_change change;
	struct answer *a = api_answer(req, &api_sandbox_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || decode_change(body, &a->call.memory, &change, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_update(&a->call, &change);
	answer_run(a);
}

static const struct http_route lifecycle_routes[] = {
	{HTTP_PATCH, "/v1/sandboxes/{id}", api_lifecycle_handle_update, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/pause", api_lifecycle_handle_pause, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/resume", api_lifecycle_handle_resume, SMALL_BODY_LIMIT},
};

const struct route_table lifecycle_table = ROUTE_TABLE(lifecycle_routes);
