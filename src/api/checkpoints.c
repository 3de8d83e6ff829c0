/* /v1/sandboxes/{id}/checkpoints: create, list, get, restore, delete; and /discard. */
#include "box/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "api/encode.h"
#include "api/routes.h"

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

struct call {
	struct http_request *req; /* NULL once the client has gone; what it asked for goes on */
	char sandbox_id[ID_SIZE];
};

static void call_aborted(void *arg)
{
	((struct call *)arg)->req = NULL;
}

static struct call *call_new(struct http_request *req)
{
	struct call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	memcpy(call->sandbox_id, http_param(req, "id"), ID_SIZE);
	http_on_abort(req, call_aborted, call);
	return call;
}

static void created(void *arg, struct checkpoint *c, int64_t frozen_us, const struct error *e)
{
	struct call *call = arg;
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
		struct call *call = call_new(req);
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

static void restored(void *arg, const struct error *e)
{
	struct call *call = arg;
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

static void handle_restore(struct http_request *req)
{
	struct error e;
	struct checkpoint *c = path_checkpoint(req);
	if (!c)
		return;
	struct call *call = call_new(req);
	if (checkpoint_restore(c, restored, call, &e) < 0)
		restored(call, &e);
}

static void handle_discard(struct http_request *req)
{
	struct sandbox *s = api_sandbox(req);
	if (s)
		sandbox_discard(s, restored, call_new(req));
}

/* ---- delete ---- */

static void deleted(void *arg, const struct error *e)
{
	struct call *call = arg;
	struct buf nothing = {0};
	if (call->req && e)
		http_respond_error(call->req, e);
	else if (call->req)
		http_respond(call->req, 204, NULL, &nothing);
	free(call);
}

static void handle_delete(struct http_request *req)
{
	struct checkpoint *c = path_checkpoint(req);
	if (c)
		checkpoint_delete(c, deleted, call_new(req));
}

static const struct http_route checkpoint_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/checkpoints", handle_create, SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/checkpoints", handle_list, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/checkpoints/{checkpoint}", handle_get, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/checkpoints/{checkpoint}/restore", handle_restore, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}/checkpoints/{checkpoint}", handle_delete, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/discard", handle_discard, 0},
};

const struct api_table checkpoint_table = API_TABLE(checkpoint_routes);
