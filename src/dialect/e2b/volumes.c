/* /volumes: create, list, get, delete. */
#include "dialect/e2b/volumes.h"

#include <stddef.h>

#include "answer/json_body.h"
#include "dialect/e2b/aliases.h"
#include "op/volumes.h"

/* ---- one ---- */

static void volume_put_rest(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	char token[AUTH_TOKEN_SIZE];
	e2b_volume_token(a->req, event->volume->id, token);
	json_put_string(w, "token", token);
}

static const struct answer_records volume_records = {
	.aliases = &e2b_volume, .rest = volume_put_rest};
static const struct answer_form volume_form = {E2B_RECORD(&volume_records)};

static void e2b_volumes_handle_create_volume(struct http_request *req)
{
	static const struct json_field fields[] = {
		{"name", FIELD_TEXT, offsetof(struct op_volume_create, name),
			FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, VOLUME_NAME_MAX},
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

static void e2b_volumes_handle_list_volumes(struct http_request *req)
{
	static const struct answer_records records = {.aliases = &e2b_volume};
	static const struct answer_form form = {E2B_LIST(&records)};
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
