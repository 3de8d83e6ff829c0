/*
 * Pause, resume, and the environment. Agentuity's pause keeps the disk and ends the processes; the
 * next execute, or a resume, boots the sandbox again.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/encode.h"
#include "op/life.h"

/* Not an envelope with data: the SDK wants these fields beside `success`. */
static int put_paused(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	const struct sandbox_view *view = event->sandbox;
	(void)e;
	json_begin_object(&w);
	json_put_bool(&w, "success", true);
	agentuity_put_id(&w, "sandboxId", "sbx_", view->id);
	json_put_string(&w, "status", agentuity_status(view));
	if (view->terminates_ms)
		json_put_time(&w, "terminatesAt", view->terminates_ms);
	json_end_object(&w);
	return 0;
}

static void handle_pause(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = put_paused,
		.fail = agentuity_fail};
	struct answer *a = agentuity_answer(req, &form);
	a->op = op_pause(&a->call, &(struct op_pause){0});
	answer_run(a);
}

static void handle_resume(struct http_request *req)
{
	struct sandbox *s = agentuity_sandbox(req);
	if (s)
		sandbox_resume(s, true, agentuity_succeed, agentuity_call_new(req, s));
}

/* ---- environment ---- */

static void changed(void *arg, const struct error *e)
{
	struct sandbox *s;
	struct sandbox_view view;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct http_request *req = agentuity_call_sandbox(arg, e, &s);
	if (!req)
		return;
	sandbox_view(s, &view);
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_put_env(&w, "env", view.env.data, view.env.len);
	json_end_object(&w);
	agentuity_respond_data(req, 200, &w);
}

/* {"K": "v" | null}: in one object what is set and what is taken out. */
static int split_env(
	const cJSON *env, struct scratch *memory, struct sandbox_change *change, struct error *e)
{
	const cJSON *item;
	size_t names = 0;
	if (!cJSON_IsObject(env))
		return error_set_field(
			e, ERROR_MISSING_FIELD, "env", "\"env\" must be an object of strings");
	const char **unset =
		scratch_alloc(memory, ((size_t)cJSON_GetArraySize(env) + 1) * sizeof *unset);
	cJSON *set = cJSON_CreateObject();
	cJSON_ArrayForEach(item, env)
	{
		if (cJSON_IsNull(item))
			unset[names++] = item->string;
		else
			cJSON_AddItemToObject(set, item->string, cJSON_Duplicate(item, true));
	}
	struct env_body {
		const cJSON *env;
	} body = {0};
	static const struct json_field fields[] = {{"env", JSON_STRING_MAP, 0, 0, 0, 1000}};
	cJSON *wrapped = cJSON_CreateObject();
	cJSON_AddItemToObject(wrapped, "env", set);
	int r = json_decode(wrapped, fields, 1, "", &body, e);
	if (r == 0)
		r = json_environment(body.env, "env", memory, &change->set_env, e);
	cJSON_Delete(wrapped);
	change->unset_env = unset;
	return r;
}

static void handle_env(struct http_request *req)
{
	struct error e = {0};
	autoscratch memory = {0};
	struct sandbox_change change = {0};
	struct sandbox *s = agentuity_sandbox(req);
	cJSON *body = s ? agentuity_body(req) : NULL;
	if (!body)
		return;
	struct agentuity_call *call = agentuity_call_new(req, s);
	const cJSON *env = cJSON_GetObjectItemCaseSensitive(body, "env");
	if (split_env(env, &memory, &change, &e) < 0 ||
		sandbox_update(s, &change, changed, call, &e) < 0) {
		agentuity_call_end(call);
		http_respond_error(req, &e);
	}
	cJSON_Delete(body);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/pause", handle_pause, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/{id}/resume", handle_resume, AGENTUITY_BODY_LIMIT},
	{HTTP_PATCH, "/env/{id}", handle_env, AGENTUITY_BODY_LIMIT},
	{HTTP_PATCH, "/env" AGENTUITY_DATED "/{id}", handle_env, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_lifecycle_table = ROUTE_TABLE(routes);
