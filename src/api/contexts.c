/* /v1/sandboxes/{id}/contexts: made, listed, restarted, interrupted, deleted. */
#include <stddef.h>

#include "answer/json_body.h"
#include "answer/records.h"
#include "api/decode.h"
#include "api/routes.h"
#include "op/code.h"

static const struct answer_records context_records = {
	.table = &code_context_model, .list = "contexts"};
static const struct answer_form context_form = {ANSWER_RECORD(&context_records)};
static const struct answer_form context_changed_form = {.pace = ANSWER_WHOLE};

/* The context that the path names, by its id or, for a default one, by its language. */
static struct op_context_ref context_ref(const struct http_request *req)
{
	return (struct op_context_ref){http_param(req, "context"), .or_language = true};
}

/* ---- create ---- */

struct create_body {
	const char *language, *cwd, *user;
};

static const struct json_field create_fields[] = {
	{"language", FIELD_TEXT, offsetof(struct create_body, language), FIELD_NOT_EMPTY, 0, 32},
	{"cwd", FIELD_TEXT, offsetof(struct create_body, cwd), FIELD_NOT_EMPTY, 0, CODE_CWD_MAX},
	{"user", FIELD_TEXT, offsetof(struct create_body, user), FIELD_NOT_EMPTY, 0, 63},
};

static void api_contexts_handle_context_create(struct http_request *req)
{
	struct error e;
	struct create_body fields = {.language = "python"};
	enum code_language language;
	struct answer *a = api_answer(req, &context_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body ||
		json_decode(body, create_fields, ARRAY_LEN(create_fields), "", &fields, &e) < 0 ||
		code_language_of(fields.language, &language, &e) < 0 ||
		decode_place(fields.user, fields.cwd, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_context_create(
		&a->call, language, &(struct code_place){fields.cwd, fields.user});
	answer_run(a);
}

/* ---- the others ---- */

static void api_contexts_handle_context_list(struct http_request *req)
{
	static const struct answer_form form = {ANSWER_LIST(&context_records)};
	struct answer *a = api_answer(req, &form);
	a->op = op_context_list(&a->call, &(struct op_context_query){0});
	answer_run(a);
}

static void handle_context_get(struct http_request *req)
{
	const struct op_context_ref ref = context_ref(req);
	struct answer *a = api_answer(req, &context_form);
	a->op = op_context_get(&a->call, &ref);
	answer_run(a);
}

static void handle_context_delete(struct http_request *req)
{
	const struct op_context_ref ref = context_ref(req);
	struct answer *a = api_answer(req, &context_changed_form);
	a->status = 204;
	a->op = op_context_delete(&a->call, &ref);
	answer_run(a);
}

static void api_contexts_handle_context_restart(struct http_request *req)
{
	const struct op_context_ref ref = context_ref(req);
	struct answer *a = api_answer(req, &context_changed_form);
	a->status = 204;
	a->op = op_context_restart(&a->call, &ref);
	answer_run(a);
}

static int context_interrupted_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	json_begin_object(&w);
	json_put_bool(&w, "interrupted", event->context->status == CODE_CONTEXT_RUNNING);
	json_end_object(&w);
	return 0;
}

static void handle_context_interrupt(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = context_interrupted_put};
	const struct op_context_ref ref = context_ref(req);
	struct answer *a = api_answer(req, &form);
	a->op = op_context_interrupt(&a->call, &ref);
	answer_run(a);
}

static const struct http_route contexts_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/contexts", api_contexts_handle_context_create,
		SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/contexts", api_contexts_handle_context_list, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/contexts/{context}", handle_context_get, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}/contexts/{context}", handle_context_delete, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/contexts/{context}/restart",
		api_contexts_handle_context_restart, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/contexts/{context}/interrupt", handle_context_interrupt, 0},
};

const struct route_table contexts_table = ROUTE_TABLE(contexts_routes);
