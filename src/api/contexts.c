/* /v1/sandboxes/{id}/contexts: made, listed, restarted, interrupted, deleted. */
#include <stddef.h>

#include "answer/json_body.h"
#include "api/decode.h"
#include "api/routes.h"
#include "op/code.h"

static void api_contexts_context_put(struct json_writer *w, const struct code_context_view *v)
{
	json_begin_object(w);
	json_put_string(w, "id", v->id);
	json_put_string(w, "language", code_language_name(v->language));
	json_put_string(w, "cwd", v->cwd);
	json_put_bool(w, "default", v->is_default);
	json_put_string(w, "status",
		v->is_running   ? "running"
		: v->has_kernel ? "idle"
				: "stopped");
	if (v->version[0])
		json_put_string(w, "version", v->version);
	json_put_int(w, "waiting", v->waiting);
	json_put_time(w, "createdAt", v->created_ms);
	json_end_object(w);
}

static int context_put_answer(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	api_contexts_context_put(&w, event->context);
	return 0;
}

static const struct answer_form context_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = context_put_answer};
static const struct answer_form context_changed_form = {.pace = ANSWER_WHOLE};

/* The context that the path names, by its id or, for a default one, by its language. */
static struct op_context_ref context_ref(const struct http_request *req)
{
	return (struct op_context_ref){http_param(req, "context"), .or_language = true};
}

/* ---- create ---- */

struct create_body {
	const char *language, *cwd;
};

static const struct json_field create_fields[] = {
	{"language", JSON_STRING, offsetof(struct create_body, language), JSON_NOT_EMPTY, 0, 32},
	{"cwd", JSON_STRING, offsetof(struct create_body, cwd), JSON_NOT_EMPTY, 0, CODE_CWD_MAX},
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
		decode_place(NULL, fields.cwd, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_context_create(&a->call, language, fields.cwd);
	answer_run(a);
}

/* ---- the others ---- */

static int api_contexts_context_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		api_contexts_context_put(w, event->context);
	} else {
		json_end_array(w);
		json_end_object(w);
	}
	return 0;
}

static void api_contexts_handle_context_list(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = api_contexts_context_list_put};
	struct answer *a = api_answer(req, &form);
	struct json_writer *w = a->own;
	w->out = &a->out;
	json_begin_object(w);
	json_key(w, "contexts");
	json_begin_array(w);
	a->op = op_context_list(&a->call, false);
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
	json_put_bool(&w, "interrupted", event->context->is_running);
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
