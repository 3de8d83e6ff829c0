/* /v1/keys: create, list, get, rotate, revoke. All of them need a key of the scope admin. */
#include "op/keys.h"

#include "answer/json_body.h"
#include "answer/records.h"
#include "api/routes.h"

static const struct answer_records key_records = {.table = &key_model, .list = "keys"};
static const struct answer_form key_form = {ANSWER_RECORD(&key_records)};

static int key_decode(struct answer *a, const cJSON *body, struct key_record *ret, struct error *e)
{
	const struct json_part parts[] = {
		{key_model.fields, NULL, key_model.count, FIELD_CREATE, ret, NULL}, {0}};
	return json_decode_parts(body, parts, &a->call.memory, e);
}

static void handle_create_key(struct http_request *req)
{
	struct key_record create = {.scope = KEY_USE};
	struct error e = {0};
	struct answer *a = answer_new(req, &key_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || key_decode(a, body, &create, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_key_create(&a->call, &create);
	answer_run(a);
}

static void handle_list_keys(struct http_request *req)
{
	static const struct answer_form form = {ANSWER_LIST(&key_records)};
	struct answer *a = answer_new(req, &form);
	a->op = op_key_list(&a->call, http_query(req, "tenant"));
	answer_run(a);
}

static void handle_get_key(struct http_request *req)
{
	struct answer *a = answer_new(req, &key_form);
	a->op = op_key_get(&a->call, &(struct op_key){.key = http_param(req, "key")});
	answer_run(a);
}

static const struct json_field rotate_fields[] = {
	{"grace", FIELD_DURATION, offsetof(struct op_key, grace_ms), 0, 0, KEY_GRACE_MAX_MS},
	{"expiresIn", FIELD_DURATION, offsetof(struct op_key, life_ms), 0, KEY_LIFE_MIN_MS,
		KEY_LIFE_MAX_MS},
};

static void handle_rotate_key(struct http_request *req)
{
	struct op_key rotate = {.key = http_param(req, "key")};
	struct error e = {0};
	struct answer *a = answer_new(req, &key_form);
	if (answer_decode_json(a, rotate_fields, ARRAY_LEN(rotate_fields), &rotate, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_key_rotate(&a->call, &rotate);
	answer_run(a);
}

static void handle_revoke_key(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct answer *a = answer_new(req, &form);
	a->status = 204;
	a->op = op_key_revoke(&a->call, &(struct op_key){.key = http_param(req, "key")});
	answer_run(a);
}

static const struct http_route key_routes[] = {
	{HTTP_POST, "/v1/keys", handle_create_key, SMALL_BODY_LIMIT, .scope = HTTP_SCOPE_ADMIN},
	{HTTP_GET, "/v1/keys", handle_list_keys, 0, .scope = HTTP_SCOPE_ADMIN},
	{HTTP_GET, "/v1/keys/{key}", handle_get_key, 0, .scope = HTTP_SCOPE_ADMIN},
	{HTTP_POST, "/v1/keys/{key}/rotate", handle_rotate_key, SMALL_BODY_LIMIT,
		.scope = HTTP_SCOPE_ADMIN},
	{HTTP_DELETE, "/v1/keys/{key}", handle_revoke_key, 0, .scope = HTTP_SCOPE_ADMIN},
};

const struct route_table key_table = ROUTE_TABLE(key_routes);
