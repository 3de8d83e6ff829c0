/*
 * The code interpreter's contexts:
 *
 *     POST   /contexts {"language","cwd"}       {"id","language","cwd"}
 *     GET    /contexts                          an array; the default ones are always among them
 *     POST   /contexts/{id}/restart             null
 *     DELETE /contexts/{id}                     null
 *
 * The SDK sends the sandbox's access token with /execute only. So the contexts are open to whoever
 * knows the sandbox's id, as they are at E2B, unless the server was told to ask for the token
 * (--context-tokens); a token that is sent must be the right one.
 */
#include "dialect/e2b/code.h"

#include <stddef.h>
#include <string.h>

#include "answer/json_body.h"
#include "dialect/e2b/aliases.h"
#include "op/admission.h"

/* ---- who may ---- */

static bool e2b_code_is_at(const struct http_request *req, const char *path)
{
	return strncmp(http_target(req), path, strlen(path)) == 0;
}

static int check_token(struct http_request *req, const char *id, struct error *e)
{
	char mark[AUTH_MARK_SIZE];
	bool is_open = !server_of(req)->context_tokens && e2b_code_is_at(req, "/contexts");
	bool is_needed = !is_open && !e2b_code_is_at(req, "/health");
	if (!is_needed && !http_header(req, "x-access-token"))
		return 0;
	if (e2b_has_token(req, id, mark))
		return auth_admit_mark(server_of(req)->auth, req, mark, e);
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

static enum answer_failure context_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	if (event && event->reason == OP_NO_CONTEXT)
		error_set(e, ERROR_NOT_FOUND, "Context %.64s not found", http_param(a->req, "id"));
	return ANSWER_ERROR;
}

/* ---- contexts ---- */

static const struct answer_records context_records = {.aliases = &e2b_context};

struct create_message {
	const char *language, *cwd;
};

static const struct json_field create_fields[] = {
	{"language", FIELD_TEXT, offsetof(struct create_message, language), 0, 0, 64},
	{"cwd", FIELD_TEXT, offsetof(struct create_message, cwd), 0, 0, CODE_CWD_MAX},
};

/* Of a language that is not there the SDK's users read the reason only if it is "not found". */
static int context_decode(
	const cJSON *message, enum code_language *language, const char **cwd, struct error *e)
{
	struct create_message fields = {.language = "python"};
	if (json_decode_known(message, create_fields, ARRAY_LEN(create_fields), "", &fields, e) < 0)
		return -1;
	if (code_language_of(fields.language, language, e) < 0) {
		e->code = ERROR_NOT_FOUND;
		return -1;
	}
	bool has_cwd = fields.cwd && fields.cwd[0];
	*cwd = has_cwd ? envd_path(fields.cwd, e) : NULL;
	return has_cwd && !*cwd ? -1 : 0;
}

static void e2b_code_handle_context_create(struct http_request *req)
{
	static const struct answer_form form = {E2B_RECORD(&context_records)};
	struct error e;
	enum code_language language;
	const char *cwd;
	struct answer *a = envd_answer(req, &form);
	const cJSON *message = answer_json(a, &e);
	if (!message || context_decode(message, &language, &cwd, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_context_create(&a->call, language, &(struct code_place){cwd, E2B_CODE_USER});
	answer_run(a);
}

/* At E2B the default ones are older than all the others. */
static void e2b_code_handle_context_list(struct http_request *req)
{
	static const struct answer_form form = {E2B_LIST(&context_records)};
	struct answer *a = envd_answer(req, &form);
	a->op = op_context_list(
		&a->call, &(struct op_context_query){.with_defaults = true, .user = E2B_CODE_USER});
	answer_run(a);
}

static int context_null_put(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)event;
	(void)e;
	buf_append_str(&a->out, "null");
	return 0;
}

static const struct answer_form context_null_form = {
	.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = context_null_put, .fail = context_fail};

static void e2b_code_handle_context_restart(struct http_request *req)
{
	struct answer *a = envd_answer(req, &context_null_form);
	a->op = op_context_restart(
		&a->call, &(struct op_context_ref){http_param(req, "id"), false});
	answer_run(a);
}

static void handle_context_remove(struct http_request *req)
{
	struct answer *a = envd_answer(req, &context_null_form);
	a->op = op_context_delete(&a->call, &(struct op_context_ref){http_param(req, "id"), false});
	answer_run(a);
}

static void handle_code_health(struct http_request *req)
{
	struct buf body = {0};
	buf_append_str(&body, "\"OK\"");
	e2b_respond_json(req, 200, &body);
}

static const struct http_route code_routes[] = {
	{HTTP_POST, "/contexts", e2b_code_handle_context_create, E2B_BODY_LIMIT},
	{HTTP_GET, "/contexts", e2b_code_handle_context_list, 0},
	{HTTP_POST, "/contexts/{id}/restart", e2b_code_handle_context_restart, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/contexts/{id}", handle_context_remove, E2B_BODY_LIMIT},
	{HTTP_GET, "/health", handle_code_health, 0},
};

const struct route_table e2b_code_table = ROUTE_TABLE(code_routes);
