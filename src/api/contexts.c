/* /v1/sandboxes/{id}/contexts: made, listed, restarted, interrupted, deleted. */
#include <stddef.h>

#include "api/contexts.h"
#include "api/decode.h"

#define CWD_MAX 4000

static void put_context(struct json_writer *w, const struct code_context *c)
{
	struct code_context_view view;
	code_context_view(c, &view);
	json_begin_object(w);
	json_put_string(w, "id", view.id);
	json_put_string(w, "language", code_language_name(view.language));
	json_put_string(w, "cwd", view.cwd);
	json_put_bool(w, "default", view.is_default);
	json_put_string(w, "status",
		view.is_running   ? "running"
		: view.has_kernel ? "idle"
				  : "stopped");
	if (view.version[0])
		json_put_string(w, "version", view.version);
	json_put_int(w, "waiting", view.waiting);
	json_put_time(w, "createdAt", view.created_ms);
	json_end_object(w);
}

static void respond_context(struct http_request *req, int status, const struct code_context *c)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	put_context(&w, c);
	api_respond_json(req, status, &body);
}

struct code_context *api_context(struct http_request *req)
{
	struct error e;
	enum code_language language;
	struct sandbox *s = api_sandbox(req);
	const char *name = http_param(req, "context");
	if (!s)
		return NULL;
	struct code_context *c = code_context_find(s, name);
	if (!c && code_language_of(name, &language, NULL) == 0)
		c = code_context_default(s, language, &e);
	else if (!c)
		error_set(&e, ERROR_NOT_FOUND, "there is no such context");
	if (!c)
		http_respond_error(req, &e);
	return c;
}

/* ---- create ---- */

struct create_body {
	const char *language, *cwd;
};

static const struct json_field create_fields[] = {
	{"language", JSON_STRING, offsetof(struct create_body, language), JSON_NOT_EMPTY, 0, 32},
	{"cwd", JSON_STRING, offsetof(struct create_body, cwd), JSON_NOT_EMPTY, 0, CWD_MAX},
};

static void created(void *arg, struct code_context *c, const struct error *e)
{
	if (c)
		respond_context(arg, 201, c);
	else
		http_respond_error(arg, e);
}

static int create(struct http_request *req, struct sandbox *s, const cJSON *body, struct error *e)
{
	struct create_body fields = {.language = "python"};
	enum code_language language;
	if (json_decode(body, create_fields, ARRAY_LEN(create_fields), "", &fields, e) < 0 ||
		code_language_of(fields.language, &language, e) < 0 ||
		decode_place(NULL, fields.cwd, e) < 0)
		return -1;
	return code_context_create(s, language, fields.cwd, created, req, e);
}

static void handle_create(struct http_request *req)
{
	struct error e;
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	if (create(req, s, body, &e) < 0)
		http_respond_error(req, &e);
	cJSON_Delete(body);
}

/* ---- the others ---- */

static void handle_list(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	const struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	json_begin_object(&w);
	json_key(&w, "contexts");
	json_begin_array(&w);
	for (const struct code_context *c = code_context_first(s); c; c = code_context_next(c))
		put_context(&w, c);
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static void handle_get(struct http_request *req)
{
	const struct code_context *c = api_context(req);
	if (c)
		respond_context(req, 200, c);
}

static void answer_nothing(void *arg, const struct error *e)
{
	struct buf nothing = {0};
	if (e)
		http_respond_error(arg, e);
	else
		http_respond(arg, 204, NULL, &nothing);
}

static void handle_delete(struct http_request *req)
{
	struct code_context *c = api_context(req);
	if (c)
		code_context_delete(c, answer_nothing, req);
}

static void handle_restart(struct http_request *req)
{
	struct code_context *c = api_context(req);
	if (c)
		code_context_restart(c, answer_nothing, req);
}

static void handle_interrupt(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct code_context *c = api_context(req);
	if (!c)
		return;
	json_begin_object(&w);
	json_put_bool(&w, "interrupted", code_context_interrupt(c));
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static const struct http_route contexts_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/contexts", handle_create, SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/contexts", handle_list, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/contexts/{context}", handle_get, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}/contexts/{context}", handle_delete, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/contexts/{context}/restart", handle_restart, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/contexts/{context}/interrupt", handle_interrupt, 0},
};

const struct route_table contexts_table = ROUTE_TABLE(contexts_routes);
