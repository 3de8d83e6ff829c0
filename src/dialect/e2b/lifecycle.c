/*
 * /sandboxes/{id}: connect, pause, timeout. Connecting to a paused sandbox resumes it, with a new
 * lease; to a running one it only gives it more time.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/decode.h"
#include "dialect/e2b/encode.h"
#include "dialect/e2b/access.h"
#include "op/life.h"

struct lifecycle_body {
	int64_t timeout_s;
	bool memory;
};

static const struct json_field lifecycle_fields[] = {
	{"timeout", JSON_INTEGER, offsetof(struct lifecycle_body, timeout_s), 0, 0, 0},
	{"duration", JSON_INTEGER, offsetof(struct lifecycle_body, timeout_s), 0, 0, 0},
	{"memory", JSON_BOOL, offsetof(struct lifecycle_body, memory), 0, 0, 0},
};

static int decode_body(struct http_request *req, struct lifecycle_body *ret)
{
	struct error e = {0};
	cJSON *body = e2b_body(req);
	if (!body)
		return -1;
	int r = json_decode_known(body, lifecycle_fields, ARRAY_LEN(lifecycle_fields), "", ret, &e);
	if (r == 0)
		r = e2b_check_timeout(ret->timeout_s, &e);
	cJSON_Delete(body);
	if (r < 0)
		http_respond_error(req, &e);
	return r;
}

static enum e2b_state state_of(const struct sandbox *s)
{
	struct sandbox_view view;
	sandbox_view(s, &view);
	return e2b_state_of(&view);
}

/* ---- what takes a while ---- */

struct lifecycle_call {
	struct http_request *req; /* NULL once the client has gone; what it asked for goes on */
	struct box *box;
	const char *tenant;
	char id[ID_SIZE];
	int status;       /* of the answer; 204 is one without a sandbox in it */
	int64_t lease_ms; /* that a resumed one gets */
};

static void call_aborted(void *arg)
{
	((struct lifecycle_call *)arg)->req = NULL;
}

static void call_done(void *arg, const struct error *e)
{
	struct lifecycle_call *call = arg;
	struct http_request *req = call->req;
	struct sandbox *s = req ? sandbox_find(call->box, call->tenant, call->id) : NULL;
	struct error gone;
	if (req && e) {
		http_respond_error(req, e);
	} else if (req && !s) {
		error_set(&gone, ERROR_NOT_FOUND, "sandbox \"%s\" not found", call->id);
		http_respond_error(req, &gone);
	} else if (req && call->status == 204) {
		e2b_respond_nothing(req, 204);
	} else if (req) {
		e2b_respond_sandbox(req, call->status, s);
	}
	free(call);
}

static struct lifecycle_call *call_new(
	struct http_request *req, const struct sandbox *s, int status, int64_t timeout_s)
{
	struct lifecycle_call *call = calloc(1, sizeof *call);
	struct sandbox_view view;
	if (!call)
		abort();
	sandbox_view(s, &view);
	call->req = req;
	call->box = server_of(req)->box;
	call->tenant = tenant_of(req);
	call->status = status;
	call->lease_ms = timeout_s * 1000;
	memcpy(call->id, view.id, ID_SIZE);
	http_on_abort(req, call_aborted, call);
	return call;
}

static void set_lease(struct lifecycle_call *call, struct sandbox *s, bool extends_only)
{
	struct error e = {0};
	struct sandbox_change change = {.settings = {.lease_ms = call->lease_ms}};
	sandbox_change_gives(&change, lease_ms);
	change.lease_extends_only = extends_only;
	if (sandbox_update(s, &change, call_done, call, &e) < 0)
		call_done(call, &e);
}

static void resumed(void *arg, const struct error *e)
{
	struct lifecycle_call *call = arg;
	struct sandbox *s = sandbox_find(call->box, call->tenant, call->id);
	if (e || !s)
		call_done(call, e);
	else
		set_lease(call, s, false);
}

/* ---- the routes ---- */

static void connect_sandbox(struct http_request *req, int64_t default_timeout_s)
{
	struct lifecycle_body body = {.timeout_s = default_timeout_s, .memory = true};
	struct sandbox *s = e2b_sandbox(req);
	if (!s || decode_body(req, &body) < 0)
		return;
	if (state_of(s) == E2B_PAUSED)
		sandbox_resume(s, body.memory, resumed, call_new(req, s, 201, body.timeout_s));
	else
		set_lease(call_new(req, s, 200, body.timeout_s), s, true);
}

static void handle_connect_v1(struct http_request *req)
{
	connect_sandbox(req, E2B_TIMEOUT_V1_S);
}

static void handle_connect_v2(struct http_request *req)
{
	connect_sandbox(req, E2B_TIMEOUT_V2_S);
}

static int put_nothing(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)event;
	(void)e;
	a->status = 204;
	return 0;
}

static void handle_pause(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE, .put = put_nothing};
	struct error e;
	struct lifecycle_body body = {.timeout_s = E2B_TIMEOUT_V1_S, .memory = true};
	struct sandbox *s = e2b_sandbox(req);
	if (!s || decode_body(req, &body) < 0)
		return;
	if (state_of(s) == E2B_PAUSED) {
		error_set(&e, ERROR_PAUSED, "the sandbox is paused already");
		http_respond_error(req, &e);
		return;
	}
	struct answer *a = e2b_answer(req, &form);
	a->op = op_pause(&a->call, &(struct op_pause){body.memory, false});
	answer_run(a);
}

static void handle_timeout(struct http_request *req)
{
	struct lifecycle_body body = {0};
	struct sandbox *s = e2b_sandbox(req);
	if (s && decode_body(req, &body) == 0)
		set_lease(call_new(req, s, 204, body.timeout_s), s, false);
}

/* {"duration"}: a lease that is never shortened. */
static void handle_refresh(struct http_request *req)
{
	struct lifecycle_body body = {.timeout_s = E2B_TIMEOUT_V1_S};
	struct sandbox *s = e2b_sandbox(req);
	if (s && decode_body(req, &body) == 0)
		set_lease(call_new(req, s, 204, body.timeout_s), s, true);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes/{id}/connect", handle_connect_v1, E2B_BODY_LIMIT},
	{HTTP_POST, "/v2/sandboxes/{id}/connect", handle_connect_v2, E2B_BODY_LIMIT},
	{HTTP_POST, "/sandboxes/{id}/pause", handle_pause, E2B_BODY_LIMIT},
	{HTTP_POST, "/sandboxes/{id}/timeout", handle_timeout, E2B_BODY_LIMIT},
	{HTTP_POST, "/sandboxes/{id}/refreshes", handle_refresh, E2B_BODY_LIMIT},
	/* What SDKs before connect had. */
	{HTTP_POST, "/sandboxes/{id}/resume", handle_connect_v1, E2B_BODY_LIMIT},
};

const struct route_table e2b_lifecycle_table = ROUTE_TABLE(routes);
