/* /volumes: create, list, get, delete. */
#include "dialect/e2b/volumes.h"

#include <stddef.h>

#include "answer/json_body.h"
#include "op/volumes.h"

static void put_volume(struct json_writer *w, const struct volume_view *view)
{
	json_put_string(w, "volumeID", view->id);
	json_put_string(w, "name", view->name);
}

/* ---- one ---- */

static int e2b_volumes_volume_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	char token[AUTH_TOKEN_SIZE];
	(void)e;
	e2b_volume_token(server_of(a->req), event->volume->id, token);
	json_begin_object(&w);
	put_volume(&w, event->volume);
	json_put_string(&w, "token", token);
	json_end_object(&w);
	return 0;
}

static const struct answer_form volume_form = {
	.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = e2b_volumes_volume_put};

static void e2b_volumes_handle_create_volume(struct http_request *req)
{
	static const struct json_field fields[] = {
		{"name", JSON_STRING, offsetof(struct op_volume_create, name),
			JSON_REQUIRED | JSON_NOT_EMPTY, 0, VOLUME_NAME_MAX},
	};
	struct op_volume_create create = {0};
	struct error e = {0};
	struct answer *a = answer_new(req, &volume_form);
	const cJSON *body = answer_json(a, &e);
	if (!body || json_decode_known(body, fields, ARRAY_LEN(fields), "", &create, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_volume_create(&a->call, &create);
	answer_run(a);
}

static void e2b_volumes_handle_get_volume(struct http_request *req)
{
	struct answer *a = e2b_volume_answer(req, &volume_form);
	a->op = op_volume_get(&a->call);
	answer_run(a);
}

static void e2b_volumes_handle_delete_volume(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct answer *a = e2b_volume_answer(req, &form);
	a->status = 204;
	a->op = op_volume_delete(&a->call);
	answer_run(a);
}

/* ---- all ---- */

struct volume_list_answer {
	struct json_writer writer;
	bool begun;
};

static int e2b_volumes_volume_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct volume_list_answer *own = a->own;
	struct json_writer *w = &own->writer;
	(void)e;
	if (!own->begun) {
		own->begun = true;
		w->out = &a->out;
		json_begin_array(w);
	}
	if (event->kind == OP_ROW) {
		json_begin_object(w);
		put_volume(w, event->volume);
		json_end_object(w);
	} else {
		json_end_array(w);
	}
	return 0;
}

static void e2b_volumes_handle_list_volumes(struct http_request *req)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct volume_list_answer),
		.put = e2b_volumes_volume_list_put};
	struct answer *a = answer_new(req, &form);
	a->op = op_volume_list(&a->call);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/volumes", e2b_volumes_handle_create_volume, E2B_BODY_LIMIT},
	{HTTP_GET, "/volumes", e2b_volumes_handle_list_volumes, 0},
	{HTTP_GET, "/volumes/{volume}", e2b_volumes_handle_get_volume, 0},
	{HTTP_DELETE, "/volumes/{volume}", e2b_volumes_handle_delete_volume, 0},
};

const struct route_table e2b_volume_table = ROUTE_TABLE(routes);
