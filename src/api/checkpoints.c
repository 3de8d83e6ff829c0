/* /v1/sandboxes/{id}/checkpoints: create, list, get, restore, delete; and /discard. */
#include "op/checkpoints.h"

#include "answer/json_body.h"
#include "api/encode.h"
#include "api/routes.h"

static void encode_checkpoint(struct json_writer *w, const struct checkpoint_view *view)
{
	json_put_string(w, "id", view->id);
	json_put_string(w, "name", view->name);
	json_put_string(w, "parent", view->parent);
	json_put_string(w, "status", view->lost ? "lost" : "ready");
	json_put_time(w, "createdAt", view->created_ms);
}

/* ---- create, get ---- */

static int api_checkpoints_checkpoint_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	json_begin_object(&w);
	encode_checkpoint(&w, event->checkpoint);
	if (a->status == 201)
		encode_milliseconds(&w, "frozenMs", event->frozen_us);
	json_end_object(&w);
	return 0;
}

static const struct answer_form checkpoint_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = api_checkpoints_checkpoint_put};

struct checkpoint_body {
	const char *name;
};

static const struct json_field checkpoint_fields[] = {
	{"name", JSON_STRING, offsetof(struct checkpoint_body, name),
		JSON_REQUIRED | JSON_NOT_EMPTY, 0, CHECKPOINT_NAME_MAX},
};

static void api_checkpoints_handle_create_checkpoint(struct http_request *req)
{
	struct checkpoint_body fields = {0};
	struct error e = {0};
	struct answer *a = api_answer(req, &checkpoint_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || json_decode(body, checkpoint_fields, ARRAY_LEN(checkpoint_fields), "", &fields,
			     &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_checkpoint_create(&a->call, fields.name);
	answer_run(a);
}

static void handle_get_checkpoint(struct http_request *req)
{
	struct answer *a = api_answer(req, &checkpoint_form);
	a->op = op_checkpoint_get(&a->call, http_param(req, "checkpoint"));
	answer_run(a);
}

/* ---- list ---- */

struct checkpoint_list_answer {
	struct json_writer writer;
	bool begun;
};

static int api_checkpoints_checkpoint_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct checkpoint_list_answer *own = a->own;
	struct json_writer *w = &own->writer;
	(void)e;
	if (!own->begun) {
		own->begun = true;
		w->out = &a->out;
		json_begin_object(w);
		json_key(w, "checkpoints");
		json_begin_array(w);
	}
	if (event->kind == OP_ROW) {
		json_begin_object(w);
		encode_checkpoint(w, event->checkpoint);
		json_end_object(w);
		return 0;
	}
	json_end_array(w);
	json_end_object(w);
	return 0;
}

static void api_checkpoints_handle_list_checkpoints(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct checkpoint_list_answer),
		.put = api_checkpoints_checkpoint_list_put};
	struct answer *a = api_answer(req, &form);
	a->op = op_checkpoint_list(&a->call);
	answer_run(a);
}

/* ---- restore, discard, delete ---- */

static int restored_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	encode_sandbox(&w, event->sandbox);
	return 0;
}

static const struct answer_form restored_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = restored_put};

static void handle_restore(struct http_request *req)
{
	struct answer *a = api_answer(req, &restored_form);
	a->op = op_checkpoint_restore(&a->call, http_param(req, "checkpoint"));
	answer_run(a);
}

static void handle_discard(struct http_request *req)
{
	struct answer *a = api_answer(req, &restored_form);
	a->op = op_discard(&a->call);
	answer_run(a);
}

static void api_checkpoints_handle_delete_checkpoint(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct answer *a = api_answer(req, &form);
	a->status = 204;
	a->op = op_checkpoint_delete(&a->call, http_param(req, "checkpoint"));
	answer_run(a);
}

static const struct http_route checkpoint_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/checkpoints", api_checkpoints_handle_create_checkpoint,
		SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/checkpoints", api_checkpoints_handle_list_checkpoints, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/checkpoints/{checkpoint}", handle_get_checkpoint, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/checkpoints/{checkpoint}/restore", handle_restore, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}/checkpoints/{checkpoint}",
		api_checkpoints_handle_delete_checkpoint, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/discard", handle_discard, 0},
};

const struct route_table checkpoint_table = ROUTE_TABLE(checkpoint_routes);
