/* /v1/sandboxes/{id}/pause and /resume, and changes by PATCH. */
#include "api/call.h"
#include "api/decode.h"

struct move_body {
	bool memory;
};

static const struct json_field move_fields[] = {
	{"memory", JSON_BOOL, offsetof(struct move_body, memory), 0, 0, 0},
};

static void handle_move(struct http_request *req,
	void (*move)(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg))
{
	struct move_body body = {.memory = true};
	struct sandbox *s = api_sandbox(req);
	if (!s || api_optional_body(req, move_fields, ARRAY_LEN(move_fields), &body) < 0)
		return;
	move(s, body.memory, api_call_sandbox, api_call_new(req, http_param(req, "id")));
}

static void handle_pause(struct http_request *req)
{
	handle_move(req, sandbox_pause);
}

static void handle_resume(struct http_request *req)
{
	handle_move(req, sandbox_resume);
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

const struct api_table lifecycle_table = API_TABLE(lifecycle_routes);
