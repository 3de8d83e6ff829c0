/* /v1/sandboxes/{id}/pause and /resume, and changes by PATCH. */
#include "answer/json_body.h"
#include "api/call.h"
#include "api/decode.h"
#include "api/encode.h"
#include "op/life.h"

struct move_body {
	bool memory;
};

static const struct json_field move_fields[] = {
	{"memory", JSON_BOOL, offsetof(struct move_body, memory), 0, 0, 0},
};

static int put_sandbox(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	encode_sandbox(&w, event->sandbox);
	return 0;
}

static const struct answer_form sandbox_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = put_sandbox};

static void handle_move(
	struct http_request *req, struct op *(*move)(const struct op_call *call, bool keep_memory))
{
	struct error e = {0};
	struct move_body body = {.memory = true};
	struct answer *a = api_answer(req, &sandbox_form);
	if (answer_decode_json(a, move_fields, ARRAY_LEN(move_fields), &body, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = move(&a->call, body.memory);
	answer_run(a);
}

static void handle_pause(struct http_request *req)
{
	handle_move(req, op_pause);
}

static void handle_resume(struct http_request *req)
{
	handle_move(req, op_resume_sandbox);
}

static void handle_update(struct http_request *req)
{
	struct error e = {0};
	struct scratch memory = {0};
	struct sandbox_change change;
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	struct api_call *call = api_call_new(req, http_param(req, "id"));
	if (decode_change(body, &memory, &change, &e) < 0 ||
		sandbox_update(s, &change, api_call_sandbox, call, &e) < 0)
		api_call_sandbox(call, &e);
	scratch_finish(&memory);
	cJSON_Delete(body);
}

static const struct http_route lifecycle_routes[] = {
	{HTTP_PATCH, "/v1/sandboxes/{id}", handle_update, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/pause", handle_pause, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/resume", handle_resume, SMALL_BODY_LIMIT},
};

const struct route_table lifecycle_table = ROUTE_TABLE(lifecycle_routes);
