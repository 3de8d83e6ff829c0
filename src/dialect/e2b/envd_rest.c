/*
 * envd's plain HTTP besides files: whether the sandbox runs, its environment; and what is said to
 * those who come for another port of the sandbox.
 */
#include <string.h>

#include "dialect/e2b/envd.h"
#include "op/life.h"

/* ---- /health ---- */

static int health_put(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)event;
	(void)e;
	a->status = 204;
	return 0;
}

static enum answer_failure health_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	(void)a;
	(void)event;
	error_set(e, ERROR_NOT_RUNNING, "The sandbox was not found");
	return ANSWER_ERROR;
}

/* Asking for it is traffic, too: it wakes what wakes by itself. */
static void envd_rest_handle_health(struct http_request *req)
{
	static const struct answer_form form = {
		.pace = ANSWER_WHOLE, .put = health_put, .fail = health_fail};
	struct answer *a = envd_answer(req, &form);
	a->op = op_wake(&a->call);
	answer_run(a);
}

/* ---- /envs ---- */

static void put_variable(struct json_writer *w, const char *entry)
{
	autobuf name = {0};
	size_t len = strcspn(entry, "=");
	buf_append(&name, entry, len);
	buf_append_char(&name, '\0');
	if (!name.failed)
		json_put_string(w, name.data, entry + len + (entry[len] == '='));
}

static int envs_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	const struct sandbox_view *view = event->sandbox;
	(void)e;
	json_begin_object(&w);
	json_put_string(&w, "E2B_SANDBOX", "true");
	json_put_string(&w, "E2B_SANDBOX_ID", view->id);
	json_put_string(&w, "E2B_TEMPLATE_ID", view->template_name);
	for (size_t at = 0; at < view->env.len; at += strlen(view->env.data + at) + 1)
		put_variable(&w, view->env.data + at);
	json_end_object(&w);
	http_add_header(a->req, "Cache-Control", "no-store");
	return 0;
}

static void handle_envs(struct http_request *req)
{
	static const struct answer_form form = {
		.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = envs_put};
	struct answer *a = envd_answer(req, &form);
	a->op = op_get(&a->call, &(struct op_get){0});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/health", envd_rest_handle_health, 0},
	{HTTP_GET, "/envs", handle_envs, 0},
};

const struct route_table envd_table = ROUTE_TABLE(routes);
