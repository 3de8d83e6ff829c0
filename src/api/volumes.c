/* /v1/volumes: create, list, get, delete. */
#include "op/volumes.h"

#include "answer/json_body.h"
#include "answer/records.h"
#include "api/routes.h"

static struct answer *volume_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	a->call.volume = http_param(req, "volume");
	return a;
}

static const struct answer_records volume_records = {.table = &volume_model, .list = "volumes"};
static const struct answer_form volume_form = {ANSWER_RECORD(&volume_records)};

static const struct json_field volume_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct op_volume_create, name),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, VOLUME_NAME_MAX},
	{"size", FIELD_BYTES, offsetof(struct op_volume_create, limit), 0, 1 << 20,
		INT64_C(1) << 50},
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

static void api_volumes_handle_list_volumes(struct http_request *req)
{
	static const struct answer_form form = {ANSWER_LIST(&volume_records)};
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
