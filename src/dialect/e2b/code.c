/*
 * The code interpreter's contexts:
 *
 *     POST   /contexts {"language","cwd"}       {"id","language","cwd"}
 *     GET    /contexts                          an array; the default ones are always among them
 *     POST   /contexts/{id}/restart             null
 *     DELETE /contexts/{id}                     null
 *
 * The SDK sends the sandbox's access token with /execute only. So the contexts are open to whoever
 * knows the sandbox's id, as they are at E2B; a token that is sent must be the right one.
 */
#include "dialect/e2b/code.h"

#include <stddef.h>
#include <string.h>

#include "dialect/e2b/encode.h"
#include "op/admission.h"

/* ---- who may ---- */

static bool is_at(const struct http_request *req, const char *path)
{
	return strncmp(http_target(req), path, strlen(path)) == 0;
}

static int check_token(struct http_request *req, const char *id, struct error *e)
{
	bool is_needed = !is_at(req, "/contexts") && !is_at(req, "/health");
	if (!is_needed && !http_header(req, "x-access-token"))
		return 0;
	if (e2b_has_token(server_of(req), req, id))
		return 0;
	return error_set(e, ERROR_UNAUTHORIZED, "the access token is missing or wrong");
}

int code_admit(struct http_request *req, struct error *e)
{
	const struct http_destination *d = http_destination(req);
	if (!d || !op_is_reachable(server_of(req)->ops, d->id))
		return error_set(e, ERROR_NOT_RUNNING, "The sandbox was not found");
	return check_token(req, d->id, e);
}

void code_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer)
{
	(void)req;
	if (e->code == ERROR_NOT_RUNNING || e->code == ERROR_PAUSED)
		answer->status = 502;
	answer->type = "text/plain; charset=utf-8";
	buf_append_str(&answer->body, e->message);
}

void code_respond_no_context(struct http_request *req, const char *id)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "Context %.64s not found", id);
	http_respond_error(req, &e);
}

/* ---- contexts ---- */

static void put_context(struct json_writer *w, const struct code_context *c)
{
	struct code_context_view view;
	code_context_view(c, &view);
	json_begin_object(w);
	json_put_string(w, "id", view.id);
	json_put_string(w, "language", code_language_name(view.language));
	json_put_string(w, "cwd", view.cwd);
	json_end_object(w);
}

static void respond_null(void *arg, const struct error *e)
{
	struct buf body = {0};
	if (e) {
		http_respond_error(arg, e);
		return;
	}
	buf_append_str(&body, "null");
	e2b_respond_json(arg, 200, &body);
}

struct create_message {
	const char *language, *cwd;
};

static const struct json_field create_fields[] = {
	{"language", JSON_STRING, offsetof(struct create_message, language), 0, 0, 64},
	{"cwd", JSON_STRING, offsetof(struct create_message, cwd), 0, 0, CODE_CWD_MAX},
};

static void created(void *arg, struct code_context *c, const struct error *e)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (!c) {
		http_respond_error(arg, e);
		return;
	}
	put_context(&w, c);
	e2b_respond_json(arg, 200, &body);
}

/* Of a language that is not there the SDK's users read the reason only if it is "not found". */
static int create(struct http_request *req, const cJSON *message, struct error *e)
{
	struct create_message fields = {.language = "python"};
	enum code_language language;
	if (json_decode_known(message, create_fields, ARRAY_LEN(create_fields), "", &fields, e) < 0)
		return -1;
	if (code_language_of(fields.language, &language, e) < 0) {
		e->code = ERROR_NOT_FOUND;
		return -1;
	}
	const char *cwd = fields.cwd && fields.cwd[0] ? envd_path(fields.cwd, e) : NULL;
	if (fields.cwd && fields.cwd[0] && !cwd)
		return -1;
	return code_context_create(envd_sandbox(req), language, cwd, created, req, e);
}

static void handle_create(struct http_request *req)
{
	struct error e;
	cJSON *message = e2b_body(req);
	if (!message)
		return;
	if (create(req, message, &e) < 0)
		http_respond_error(req, &e);
	cJSON_Delete(message);
}

static void put_contexts(struct json_writer *w, const struct sandbox *s, bool defaults)
{
	for (const struct code_context *c = code_context_first(s); c; c = code_context_next(c)) {
		struct code_context_view view;
		code_context_view(c, &view);
		if (view.is_default == defaults)
			put_context(w, c);
	}
}

/* At E2B the default ones are older than all the others. */
static void handle_list(struct http_request *req)
{
	static const enum code_language always[] = {CODE_PYTHON, CODE_JAVASCRIPT};
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox *s = envd_sandbox(req);
	for (size_t i = 0; i < ARRAY_LEN(always); i++)
		code_context_default(s, always[i], NULL);
	json_begin_array(&w);
	put_contexts(&w, s, true);
	put_contexts(&w, s, false);
	json_end_array(&w);
	e2b_respond_json(req, 200, &body);
}

static void handle_restart(struct http_request *req)
{
	struct code_context *c = code_context_find(envd_sandbox(req), http_param(req, "id"));
	if (c)
		code_context_restart(c, respond_null, req);
	else
		code_respond_no_context(req, http_param(req, "id"));
}

static void handle_remove(struct http_request *req)
{
	struct code_context *c = code_context_find(envd_sandbox(req), http_param(req, "id"));
	if (c)
		code_context_delete(c, respond_null, req);
	else
		code_respond_no_context(req, http_param(req, "id"));
}

static void handle_health(struct http_request *req)
{
	struct buf body = {0};
	buf_append_str(&body, "\"OK\"");
	e2b_respond_json(req, 200, &body);
}

static const struct http_route code_routes[] = {
	{HTTP_POST, "/contexts", handle_create, E2B_BODY_LIMIT},
	{HTTP_GET, "/contexts", handle_list, 0},
	{HTTP_POST, "/contexts/{id}/restart", handle_restart, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/contexts/{id}", handle_remove, E2B_BODY_LIMIT},
	{HTTP_GET, "/health", handle_health, 0},
};

const struct route_table e2b_code_table = ROUTE_TABLE(code_routes);
