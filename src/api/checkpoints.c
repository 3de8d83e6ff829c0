/* /v1/sandboxes/{id}/checkpoints: create, list, get, restore, delete; and /discard. */
#include "box/disk/checkpoint.h"

#include <stdlib.h>

#include "api/call.h"
#include "api/encode.h"

#define NAME_MAX_LEN 63

static void encode_checkpoint(struct json_writer *w, const struct checkpoint *c)
{
	struct checkpoint_view view;
	checkpoint_view(c, &view);
	json_put_string(w, "id", view.id);
	json_put_string(w, "name", view.name);
	json_put_string(w, "parent", view.parent);
	json_put_string(w, "status", view.lost ? "lost" : "ready");
	json_put_time(w, "createdAt", view.created_ms);
}

/* The checkpoint that the path names, or NULL after the request was answered. */
static struct checkpoint *path_checkpoint(struct http_request *req)
{
	struct error e;
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return NULL;
	struct checkpoint *c = checkpoint_find(s, http_param(req, "checkpoint"));
	if (!c) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such checkpoint");
		http_respond_error(req, &e);
	}
	return c;
}

/* ---- create ---- */

static void created(void *arg, struct checkpoint *c, int64_t frozen_us, const struct error *e)
{
	struct api_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (call->req && e) {
		http_respond_error(call->req, e);
	} else if (call->req) {
		json_begin_object(&w);
		encode_checkpoint(&w, c);
		encode_milliseconds(&w, "frozenMs", frozen_us);
		json_end_object(&w);
		api_respond_json(call->req, 201, &body);
	}
	free(call);
}

struct create_body {
	const char *name;
};

static const struct json_field create_fields[] = {
	{"name", JSON_STRING, offsetof(struct create_body, name), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		NAME_MAX_LEN},
};

static void handle_create(struct http_request *req)
{
	struct create_body fields = {0};
	struct error e;
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	if (json_decode(body, create_fields, ARRAY_LEN(create_fields), "", &fields, &e) < 0) {
		http_respond_error(req, &e);
	} else {
		struct api_call *call = api_call_new(req, http_param(req, "id"));
		if (checkpoint_create(s, fields.name, created, call, &e) < 0)
			created(call, NULL, 0, &e);
	}
	cJSON_Delete(body);
}

/* ---- list, get ---- */

static void handle_list(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	json_begin_object(&w);
	json_key(&w, "checkpoints");
	json_begin_array(&w);
	for (struct checkpoint *c = checkpoint_first(s); c; c = checkpoint_next(c)) {
		json_begin_object(&w);
		encode_checkpoint(&w, c);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static void handle_get(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct checkpoint *c = path_checkpoint(req);
	if (!c)
		return;
	json_begin_object(&w);
	encode_checkpoint(&w, c);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* ---- restore, discard ---- */

static void handle_restore(struct http_request *req)
{
	struct error e;
	struct checkpoint *c = path_checkpoint(req);
	if (!c)
		return;
	struct api_call *call = api_call_new(req, http_param(req, "id"));
	if (checkpoint_restore(c, api_call_sandbox, call, &e) < 0)
		api_call_sandbox(call, &e);
}

static void handle_discard(struct http_request *req)
{
	struct sandbox *s = api_sandbox(req);
	if (s)
		sandbox_discard(s, api_call_sandbox, api_call_new(req, http_param(req, "id")));
}

/* ---- delete ---- */

static void handle_delete(struct http_request *req)
{
	struct checkpoint *c = path_checkpoint(req);
	if (c)
		checkpoint_delete(c, api_call_done, api_call_new(req, NULL));
}

static const struct http_route checkpoint_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/checkpoints", handle_create, SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/checkpoints", handle_list, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/checkpoints/{checkpoint}", handle_get, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/checkpoints/{checkpoint}/restore", handle_restore, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}/checkpoints/{checkpoint}", handle_delete, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/discard", handle_discard, 0},
};

const struct route_table checkpoint_table = ROUTE_TABLE(checkpoint_routes);
