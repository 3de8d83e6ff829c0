/*
 * Named restore points of one sandbox: POST /sandbox/{id}/checkpoint, GET
 * /sandbox/checkpoints/{id}, and what is done with one of them. Agentuity calls a parent by its
 * name.
 */
#include "op/checkpoints.h"

#include <string.h>

#include "answer/json_body.h"
#include "dialect/agentuity/routes.h"

static void put_checkpoint(struct json_writer *w, const struct checkpoint_view *view)
{
	json_begin_object(w);
	agentuity_put_id(w, "id", "ckpt_", view->id);
	json_put_string(w, "name", view->name);
	json_put_time(w, "createdAt", view->created_ms);
	json_put_string(w, "parent", view->parent_name);
	json_end_object(w);
}

/* ---- create ---- */

struct checkpoint_body {
	const char *name;
};

static const struct json_field checkpoint_fields[] = {
	{"name", JSON_STRING, offsetof(struct checkpoint_body, name),
		JSON_REQUIRED | JSON_NOT_EMPTY, 0, 128},
};

static int agentuity_checkpoints_checkpoint_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	agentuity_begin_data(&w);
	put_checkpoint(&w, event->checkpoint);
	json_end_object(&w);
	return 0;
}

static void agentuity_checkpoints_handle_create_checkpoint(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = agentuity_checkpoints_checkpoint_put,
		.fail = agentuity_fail};
	struct error e = {0};
	struct checkpoint_body fields = {0};
	struct answer *a = agentuity_answer(req, &form);
	const cJSON *body = answer_json(a, &e);
	if (!body || json_decode_known(body, checkpoint_fields, ARRAY_LEN(checkpoint_fields), "",
			     &fields, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_checkpoint_create(&a->call, fields.name);
	answer_run(a);
}

/* ---- list ---- */

struct checkpoint_list_answer {
	struct json_writer writer;
	bool begun;
};

static int agentuity_checkpoints_checkpoint_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct checkpoint_list_answer *own = a->own;
	struct json_writer *w = &own->writer;
	(void)e;
	if (!own->begun) {
		own->begun = true;
		w->out = &a->out;
		agentuity_begin_data(w);
		json_begin_object(w);
		json_key(w, "checkpoints");
		json_begin_array(w);
	}
	if (event->kind == OP_ROW) {
		put_checkpoint(w, event->checkpoint);
		return 0;
	}
	json_end_array(w);
	json_end_object(w);
	json_end_object(w);
	return 0;
}

static void agentuity_checkpoints_handle_list_checkpoints(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct checkpoint_list_answer),
		.put = agentuity_checkpoints_checkpoint_list_put,
		.fail = agentuity_fail};
	struct answer *a = agentuity_answer(req, &form);
	a->op = op_checkpoint_list(&a->call);
	answer_run(a);
}

/* ---- restore, delete ---- */

/* By its id, with its prefix or without, or by its name. */
static const char *checkpoint_ref(const struct http_request *req)
{
	const char *text = http_param(req, "checkpoint");
	bool has_prefix = strncmp(text, "ckpt_", 5) == 0 && id_is_valid(text + 5);
	return has_prefix ? text + 5 : text;
}

static void handle_restore_checkpoint(struct http_request *req)
{
	struct answer *a = agentuity_answer(req, &agentuity_success_form);
	a->op = op_checkpoint_restore(&a->call, checkpoint_ref(req));
	answer_run(a);
}

static void agentuity_checkpoints_handle_delete_checkpoint(struct http_request *req)
{
	struct answer *a = agentuity_answer(req, &agentuity_success_form);
	a->op = op_checkpoint_delete(&a->call, checkpoint_ref(req));
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/checkpoint", agentuity_checkpoints_handle_create_checkpoint,
		AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/checkpoints/{id}", agentuity_checkpoints_handle_list_checkpoints,
		AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/{id}/checkpoint/{checkpoint}/restore", handle_restore_checkpoint,
		AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/{id}/checkpoint/{checkpoint}",
		agentuity_checkpoints_handle_delete_checkpoint, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_checkpoint_table = ROUTE_TABLE(routes);
