/* /v1/volumes: create, list, get, delete. */
#include "op/volumes.h"

#include "answer/json_body.h"
#include "api/routes.h"
#include "base/units.h"

static void encode_volume(struct json_writer *w, const struct volume_view *view)
{
	char size[UNITS_TEXT_SIZE];
	json_begin_object(w);
	json_put_string(w, "id", view->id);
	json_put_string(w, "name", view->name);
	json_put_string(w, "status", view->lost ? "lost" : "ready");
	if (view->limit) { /* 0: this server cannot limit it */
		units_format_size(view->limit, size);
		json_put_string(w, "size", size);
	}
	json_put_int(w, "sandboxes", view->mounts);
	json_put_time(w, "createdAt", view->created_ms);
	json_end_object(w);
}

static struct answer *volume_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	a->call.volume = http_param(req, "volume");
	return a;
}

static int api_volumes_volume_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	encode_volume(&w, event->volume);
	return 0;
}

static const struct answer_form volume_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = api_volumes_volume_put};

static const struct json_field volume_fields[] = {
	{"name", JSON_STRING, offsetof(struct op_volume_create, name),
		JSON_REQUIRED | JSON_NOT_EMPTY, 0, VOLUME_NAME_MAX},
	{"size", JSON_SIZE, offsetof(struct op_volume_create, limit), 0, 1 << 20, INT64_C(1) << 50},
};

static void api_volumes_handle_create_volume(struct http_request *req)
{
	struct op_volume_create create = {0};
	struct error e = {0};
	struct answer *a = volume_answer(req, &volume_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body ||
		json_decode(body, volume_fields, ARRAY_LEN(volume_fields), "", &create, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_volume_create(&a->call, &create);
	answer_run(a);
}

struct volume_list_answer {
	struct json_writer writer;
	bool begun;
};

static int api_volumes_volume_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct volume_list_answer *own = a->own;
	struct json_writer *w = &own->writer;
	(void)e;
	if (!own->begun) {
		own->begun = true;
		w->out = &a->out;
		json_begin_object(w);
		json_key(w, "volumes");
		json_begin_array(w);
	}
	if (event->kind == OP_ROW) {
		encode_volume(w, event->volume);
		return 0;
	}
	json_end_array(w);
	json_end_object(w);
	return 0;
}

static void api_volumes_handle_list_volumes(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct volume_list_answer),
		.put = api_volumes_volume_list_put};
	struct answer *a = volume_answer(req, &form);
	a->op = op_volume_list(&a->call);
	answer_run(a);
}

static void api_volumes_handle_get_volume(struct http_request *req)
{
	struct answer *a = volume_answer(req, &volume_form);
	a->op = op_volume_get(&a->call);
	answer_run(a);
}

static void api_volumes_handle_delete_volume(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct answer *a = volume_answer(req, &form);
	a->status = 204;
	a->op = op_volume_delete(&a->call);
	answer_run(a);
}

static const struct http_route volume_routes[] = {
	{HTTP_POST, "/v1/volumes", api_volumes_handle_create_volume, SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/volumes", api_volumes_handle_list_volumes, 0},
	{HTTP_GET, "/v1/volumes/{volume}", api_volumes_handle_get_volume, 0},
	{HTTP_DELETE, "/v1/volumes/{volume}", api_volumes_handle_delete_volume, 0},
};

const struct route_table volume_table = ROUTE_TABLE(volume_routes);
