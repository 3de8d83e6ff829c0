/*
 * envd's plain HTTP besides files: whether the sandbox runs, its environment; and what is said to
 * those who come for another port of the sandbox.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/encode.h"
#include "dialect/e2b/envd.h"

/* ---- /health ---- */

struct health_call {
	struct http_request *req; /* NULL once the client has gone */
};

static void health_aborted(void *arg)
{
	((struct health_call *)arg)->req = NULL;
}

static void health_known(void *arg, const struct error *e)
{
	struct health_call *call = arg;
	struct error gone;
	error_set(&gone, ERROR_NOT_RUNNING, "The sandbox was not found");
	if (call->req && e)
		http_respond_error(call->req, &gone);
	else if (call->req)
		e2b_respond_nothing(call->req, 204);
	free(call);
}

/* Asking for it is traffic, too: it wakes what wakes by itself. */
static void handle_health(struct http_request *req)
{
	struct sandbox_view view;
	struct sandbox *s = envd_sandbox(req);
	sandbox_view(s, &view);
	if (e2b_state_of(&view) == E2B_RUNNING) {
		e2b_respond_nothing(req, 204);
		return;
	}
	struct health_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	http_on_abort(req, health_aborted, call);
	sandbox_resume(s, true, health_known, call);
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

static void handle_envs(struct http_request *req)
{
	struct sandbox_view view;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	sandbox_view(envd_sandbox(req), &view);
	json_begin_object(&w);
	json_put_string(&w, "E2B_SANDBOX", "true");
	json_put_string(&w, "E2B_SANDBOX_ID", view.id);
	json_put_string(&w, "E2B_TEMPLATE_ID", view.template_name);
	for (size_t at = 0; at < view.env.len; at += strlen(view.env.data + at) + 1)
		put_variable(&w, view.env.data + at);
	json_end_object(&w);
	http_add_header(req, "Cache-Control", "no-store");
	e2b_respond_json(req, 200, &body);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/health", handle_health, 0},
	{HTTP_GET, "/envs", handle_envs, 0},
};

const struct route_table envd_table = ROUTE_TABLE(routes);

/* ---- other ports ---- */

static void handle_port(struct http_request *req)
{
	struct error e;
	error_set(
		&e, ERROR_NOT_IMPLEMENTED, "this server does not serve the ports of sandboxes yet");
	http_respond_error(req, &e);
}

static const struct http_route port_routes[] = {
	{HTTP_ANY, "/{rest**}", handle_port, UINT64_MAX, true},
};

const struct route_table envd_ports_table = ROUTE_TABLE(port_routes);
