/* /v1/sandboxes/{id}/checkpoints: create, list, get, restore, delete; and /discard. */
#include "op/checkpoints.h"

#include "answer/json_body.h"
#include "answer/records.h"
#include "api/encode.h"
#include "api/routes.h"

/* ---- create, get ---- */

static void checkpoint_put_rest(
	struct answer *a, struct json_writer *w, const struct op_event *event)
{
	if (a->status == 201)
		encode_milliseconds(w, "frozenMs", event->frozen_us);
}

static const struct answer_records checkpoint_records = {
	.table = &checkpoint_model, .rest = checkpoint_put_rest};
static const struct answer_form checkpoint_form = {ANSWER_RECORD(&checkpoint_records)};

struct checkpoint_body {
	const char *name;
};

static const struct json_field checkpoint_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct checkpoint_body, name),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, CHECKPOINT_NAME_MAX},
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

static void api_checkpoints_handle_list_checkpoints(struct http_request *req)
{
	static const struct answer_records records = {
		.table = &checkpoint_model, .list = "checkpoints"};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	struct answer *a = api_answer(req, &form);
	a->op = op_checkpoint_list(&a->call);
	answer_run(a);
}

/* ---- restore, discard, delete ---- */

static void handle_restore(struct http_request *req)
{
	struct answer *a = api_answer(req, &api_sandbox_form);
	a->op = op_checkpoint_restore(&a->call, http_param(req, "checkpoint"));
	answer_run(a);
}

static void handle_discard(struct http_request *req)
{
	struct answer *a = api_answer(req, &api_sandbox_form);
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
