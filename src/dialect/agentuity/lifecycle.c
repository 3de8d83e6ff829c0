/*
 * Pause, resume, and the environment. Agentuity's pause keeps the disk and ends the processes; the
 * next execute, or a resume, boots the sandbox again.
 */
#include "answer/json_body.h"
#include "dialect/agentuity/aliases.h"
#include "op/life.h"

/* Not an envelope with data: the SDK wants these fields beside `success`. */
static int put_paused(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	const struct sandbox_view *view = event->sandbox;
	(void)e;
	json_begin_object(&w);
	json_put_bool(&w, "success", true);
	json_encode_alias(&w, &agentuity_sandbox_state, view);
	if (view->terminates_ms)
		json_put_time(&w, "terminatesAt", view->terminates_ms);
	json_end_object(&w);
	return 0;
}

static void agentuity_lifecycle_handle_pause(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = put_paused,
		.fail = agentuity_fail};
	struct answer *a = agentuity_answer(req, &form);
	a->op = op_pause(&a->call, &(struct op_pause){0});
	answer_run(a);
}

static void agentuity_lifecycle_handle_resume(struct http_request *req)
{
	struct answer *a = agentuity_answer(req, &agentuity_success_form);
	a->op = op_resume_sandbox(&a->call, true);
	answer_run(a);
}

/* ---- environment ---- */

static int agentuity_lifecycle_env_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_put_env(&w, "env", event->sandbox->env.data, event->sandbox->env.len);
	json_end_object(&w);
	json_end_object(&w);
	return 0;
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
	static const struct json_field fields[] = {{"env", FIELD_STRING_MAP, 0, 0, 0, 1000}};
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
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = agentuity_lifecycle_env_put,
		.fail = agentuity_fail};
	struct error e = {0};
	struct sandbox_change change = {0};
	struct answer *a = agentuity_answer(req, &form);
	const cJSON *body = answer_json(a, &e);
	const cJSON *env = cJSON_GetObjectItemCaseSensitive(body, "env");
	if (!body || split_env(env, &a->call.memory, &change, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_update(&a->call, &change);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/pause", agentuity_lifecycle_handle_pause, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/{id}/resume", agentuity_lifecycle_handle_resume, AGENTUITY_BODY_LIMIT},
	{HTTP_PATCH, "/env/{id}", handle_env, AGENTUITY_BODY_LIMIT},
	{HTTP_PATCH, "/env" AGENTUITY_DATED "/{id}", handle_env, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_lifecycle_table = ROUTE_TABLE(routes);
