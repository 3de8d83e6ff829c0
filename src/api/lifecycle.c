/* /v1/sandboxes/{id}/pause and /resume, and changes by PATCH. */
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/routes.h"

struct move_call {
	struct http_request *req; /* NULL once the client has gone */
	char sandbox_id[ID_SIZE];
};

struct move_body {
	bool memory;
};

static const struct json_field move_fields[] = {
	{"memory", JSON_BOOL, offsetof(struct move_body, memory), 0, 0, 0},
};

/* What was asked for goes on without the client. */
static void move_aborted(void *arg)
{
	((struct move_call *)arg)->req = NULL;
}

static void move_done(void *arg, const struct error *e)
{
	struct move_call *call = arg;
	struct http_request *req = call->req;
	struct error gone;
	struct sandbox *s =
		req ? sandbox_find(api_box(req), api_tenant(req), call->sandbox_id) : NULL;
	if (req && e) {
		http_respond_error(req, e);
	} else if (s) {
		api_respond_sandbox(req, 200, s);
	} else if (req) {
		error_set(&gone, ERROR_NOT_FOUND, "the sandbox was deleted");
		http_respond_error(req, &gone);
	}
	free(call);
}

static struct move_call *call_new(struct http_request *req)
{
	struct move_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	memcpy(call->sandbox_id, http_param(req, "id"), ID_SIZE);
	return call;
}

static void handle_move(struct http_request *req,
	void (*move)(struct sandbox *s, bool keep_memory, sandbox_done_fn *done, void *arg))
{
	struct move_body body = {.memory = true};
	struct sandbox *s = api_sandbox(req);
	if (!s || api_optional_body(req, move_fields, ARRAY_LEN(move_fields), &body) < 0)
		return;
	struct move_call *call = call_new(req);
	http_on_abort(req, move_aborted, call);
	move(s, body.memory, move_done, call);
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
	struct move_call *call = call_new(req);
	if (decode_change(body, &memory, &change, &e) < 0 ||
		sandbox_update(s, &change, move_done, call, &e) < 0) {
		free(call);
		http_respond_error(req, &e);
	} else {
		http_on_abort(req, move_aborted, call);
	}
	scratch_finish(&memory);
	cJSON_Delete(body);
}

static const struct http_route lifecycle_routes[] = {
	{HTTP_PATCH, "/v1/sandboxes/{id}", handle_update, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/pause", handle_pause, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/resume", handle_resume, SMALL_BODY_LIMIT},
};

const struct api_table lifecycle_table = API_TABLE(lifecycle_routes);
