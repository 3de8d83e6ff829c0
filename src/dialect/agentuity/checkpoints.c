/*
 * Named restore points of one sandbox: POST /sandbox/{id}/checkpoint, GET
 * /sandbox/checkpoints/{id}, and what is done with one of them. Agentuity calls a parent by its
 * name.
 */
#include "op/checkpoints.h"

#include <string.h>

#include "answer/json_body.h"
#include "dialect/agentuity/aliases.h"

static const struct answer_records checkpoint_records = {
	.aliases = &agentuity_checkpoint, .open = agentuity_begin_data, .list = "checkpoints"};

/* ---- create ---- */

struct checkpoint_body {
	const char *name;
};

static const struct json_field checkpoint_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct checkpoint_body, name),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 128},
};

static void agentuity_checkpoints_handle_create_checkpoint(struct http_request *req)
{
	static const struct answer_form form = {
		ANSWER_RECORD(&checkpoint_records), .fail = agentuity_fail};
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

static void agentuity_checkpoints_handle_list_checkpoints(struct http_request *req)
{
	static const struct answer_form form = {
		ANSWER_LIST(&checkpoint_records), .fail = agentuity_fail};
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
