/*
 * /v1/sandboxes/{id}/env: the variables that everything started from now on begins with. What runs
 * keeps what it has.
 */
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"

static void respond_env(struct http_request *req, const struct sandbox *s)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	sandbox_view(s, &view);
	json_env(&w, view.env.data, view.env.len);
	api_respond_json(req, 200, &body);
}

static void handle_get_env(struct http_request *req)
{
	const struct sandbox *s = api_sandbox(req);
	if (s)
		respond_env(req, s);
}

static void env_stored(void *arg, const struct error *e)
{
	struct http_request *req = arg;
	if (e) {
		http_respond_error(req, e);
		return;
	}
	/* It may have been deleted meanwhile. */
	const struct sandbox *s = api_sandbox(req);
	if (s)
		respond_env(req, s);
}

static void handle_change_env(struct http_request *req)
{
	struct error e;
	struct scratch memory = {0};
	struct sandbox_change change = {0};
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	if (decode_env_change(body, &memory, &change, &e) < 0 ||
		sandbox_update(s, &change, env_stored, req, &e) < 0)
		http_respond_error(req, &e);
	scratch_finish(&memory);
	cJSON_Delete(body);
}

static const struct http_route environment_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/env", handle_get_env, 0},
	{HTTP_PATCH, "/v1/sandboxes/{id}/env", handle_change_env, BODY_LIMIT},
};

const struct route_table environment_table = ROUTE_TABLE(environment_routes);
