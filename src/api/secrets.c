/* /v1/secrets: put, list, get, delete. Looking is for every key: there are names, and no values. */
#include "op/secrets.h"

#include <string.h>

#include "answer/json_body.h"
#include "answer/records.h"
#include "api/routes.h"

#define SECRET_BODY_LIMIT (128 * 1024) /* a value whose every byte is escaped */

static const struct answer_records secret_records = {.table = &secret_model, .list = "secrets"};
static const struct answer_form secret_form = {ANSWER_RECORD(&secret_records)};

/* The value lies in the call's memory; the bytes that came are overwritten. */
static int secret_decode(struct answer *a, char **ret, struct error *e)
{
	struct secret_record body = {0};
	const struct json_part parts[] = {
		{secret_model.fields, NULL, secret_model.count, FIELD_CREATE, &body, NULL}, {0}};
	size_t len;
	const cJSON *tree = answer_typed_json(a, e);
	int r = tree ? json_decode_parts(tree, parts, &a->call.memory, e) : -1;
	const char *bytes = http_body(a->req, &len);
	if (len > 0)
		explicit_bzero((char *)(uintptr_t)bytes, len);
	*ret = (char *)(uintptr_t)body.value;
	return r;
}

static void handle_put_secret(struct http_request *req)
{
	struct op_secret put = {.name = http_param(req, "name")};
	struct error e = {0};
	struct answer *a = answer_new(req, &secret_form);
	if (secret_decode(a, &put.value, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_secret_put(&a->call, &put);
	answer_run(a);
}

static void handle_list_secrets(struct http_request *req)
{
	static const struct answer_form form = {ANSWER_LIST(&secret_records)};
	struct answer *a = answer_new(req, &form);
	a->op = op_secret_list(&a->call);
	answer_run(a);
}

static void handle_get_secret(struct http_request *req)
{
	struct answer *a = answer_new(req, &secret_form);
	a->op = op_secret_get(&a->call, &(struct op_secret){.name = http_param(req, "name")});
	answer_run(a);
}

static void handle_delete_secret(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct answer *a = answer_new(req, &form);
	a->status = 204;
	a->op = op_secret_delete(&a->call, &(struct op_secret){.name = http_param(req, "name")});
	answer_run(a);
}

static const struct http_route secret_routes[] = {
	{HTTP_GET, "/v1/secrets", handle_list_secrets, 0},
	{HTTP_GET, "/v1/secrets/{name}", handle_get_secret, 0},
	{HTTP_PUT, "/v1/secrets/{name}", handle_put_secret, SECRET_BODY_LIMIT,
		.scope = HTTP_SCOPE_ADMIN},
	{HTTP_DELETE, "/v1/secrets/{name}", handle_delete_secret, 0, .scope = HTTP_SCOPE_ADMIN},
};

const struct route_table secret_table = ROUTE_TABLE(secret_routes);
