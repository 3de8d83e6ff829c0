/* /v1/sandboxes: create, get, delete. */
#include <stdlib.h>

#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"
#include "base/cleanup.h"

void api_respond_sandbox(struct http_request *req, int status, const struct sandbox *s)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	sandbox_view(s, &view);
	encode_sandbox(&w, &view);
	api_respond_json(req, status, &body);
}

/* ---- create ---- */

struct create_call {
	struct http_request *req; /* NULL once the client has gone */
};

static void create_aborted(void *arg)
{
	struct create_call *call = arg;
	call->req = NULL;
}

static void create_done(void *arg, struct sandbox *s, const struct error *e)
{
	struct create_call *call = arg;
	if (!call->req) {
		/* Nobody has its id. */
		if (s)
			sandbox_destroy(s, NULL, NULL);
	} else if (s) {
		api_respond_sandbox(call->req, 201, s);
	} else {
		http_respond_error(call->req, e);
	}
	free(call);
}

static void handle_create_sandbox(struct http_request *req)
{
	struct error e = {0};
	struct scratch memory = {0};
	struct sandbox_spec spec = {.tenant = tenant_of(req)};
	cJSON *body = api_body(req);
	if (!body)
		return;
	struct create_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	if (decode_create(body, &memory, &spec, &e) < 0 ||
		sandbox_create(server_of(req)->box, &spec, create_done, call, &e) < 0) {
		free(call);
		http_respond_error(req, &e);
	} else {
		http_on_abort(req, create_aborted, call);
	}
	scratch_finish(&memory);
	cJSON_Delete(body);
}

/* ---- get, delete ---- */

struct get_call {
	struct http_request *req;
	bool include_deleted;
};

static void get_aborted(void *arg)
{
	((struct get_call *)arg)->req = NULL;
}

/* One that ended by itself is shown for as long as it is known; a deleted one only on request. */
static void ended_loaded(void *arg, const struct sandbox_view *view)
{
	struct get_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct error e;
	if (!call->req) {
		free(call);
		return;
	}
	if (view && (call->include_deleted || view->status != SANDBOX_DELETED)) {
		encode_sandbox(&w, view);
		api_respond_json(call->req, 200, &body);
	} else {
		error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
		http_respond_error(call->req, &e);
	}
	free(call);
}

static void handle_get_sandbox(struct http_request *req)
{
	struct error e;
	bool include_deleted = false;
	if (query_bool(req, "includeDeleted", &include_deleted, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	const char *id = http_param(req, "id");
	struct sandbox *s = sandbox_find(server_of(req)->box, tenant_of(req), id);
	if (s) {
		api_respond_sandbox(req, 200, s);
		return;
	}
	struct get_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->include_deleted = include_deleted;
	http_on_abort(req, get_aborted, call);
	sandbox_load_ended(server_of(req)->box, tenant_of(req), id, ended_loaded, call);
}

struct delete_call {
	struct http_request *req;
};

static void delete_aborted(void *arg)
{
	((struct delete_call *)arg)->req = NULL;
}

static void delete_done(void *arg)
{
	struct delete_call *call = arg;
	struct buf nothing = {0};
	if (call->req)
		http_respond(call->req, 204, NULL, &nothing);
	free(call);
}

static void handle_delete_sandbox(struct http_request *req)
{
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	struct delete_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	http_on_abort(req, delete_aborted, call);
	sandbox_destroy(s, delete_done, call);
}

static const struct http_route sandbox_routes[] = {
	{HTTP_POST, "/v1/sandboxes", handle_create_sandbox, BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}", handle_get_sandbox, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}", handle_delete_sandbox, 0},
};

const struct route_table sandbox_table = ROUTE_TABLE(sandbox_routes);
