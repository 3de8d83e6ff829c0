/*
 * /sandboxes/{id}: connect, pause, timeout. Connecting to a paused sandbox resumes it, with a new
 * lease; to a running one it only gives it more time.
 */
#include <stddef.h>

#include "answer/json_body.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/aliases.h"
#include "op/life.h"

struct lifecycle_body {
	int64_t timeout_s;
	bool memory;
};

static const struct json_field lifecycle_fields[] = {
	{"timeout", FIELD_INTEGER, offsetof(struct lifecycle_body, timeout_s), 0, 0, 0},
	{"duration", FIELD_INTEGER, offsetof(struct lifecycle_body, timeout_s), 0, 0, 0},
	{"memory", FIELD_BOOL, offsetof(struct lifecycle_body, memory), 0, 0, 0},
};

static const struct json_field timeout_fields[] = {
	{"timeout", FIELD_INTEGER, offsetof(struct lifecycle_body, timeout_s), FIELD_REQUIRED, 0,
		0},
};

/* Negative: the request is being answered. */
static int decode_lifecycle(struct answer *a, struct lifecycle_body *ret)
{
	struct error e = {0};
	const cJSON *body = answer_json(a, &e);
	if (body &&
		json_decode_known(
			body, lifecycle_fields, ARRAY_LEN(lifecycle_fields), "", ret, &e) == 0 &&
		e2b_check_timeout(ret->timeout_s, &e) == 0)
		return 0;
	answer_refuse(a, &e);
	return -1;
}

/* ---- connect ---- */

static int connect_put(struct answer *a, const struct op_event *event, struct error *e)
{
	a->status = event->woke ? 201 : 200;
	return e2b_sandbox_form.put(a, event, e);
}

static void connect_sandbox(struct http_request *req, int64_t default_timeout_s)
{
	static const struct answer_form form = {
		.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = connect_put, .fail = e2b_fail};
	struct lifecycle_body body = {.timeout_s = default_timeout_s, .memory = true};
	struct answer *a = e2b_usable_answer(req, &form);
	if (decode_lifecycle(a, &body) < 0)
		return;
	a->op = op_renew(&a->call, &(struct op_renew){body.timeout_s * 1000, body.memory});
	answer_run(a);
}

static void handle_connect_v1(struct http_request *req)
{
	connect_sandbox(req, E2B_TIMEOUT_V1_S);
}

static void handle_connect_v2(struct http_request *req)
{
	connect_sandbox(req, E2B_TIMEOUT_V2_S);
}

/* ---- pause ---- */

static void e2b_lifecycle_handle_pause(struct http_request *req)
{
	struct lifecycle_body body = {.timeout_s = E2B_TIMEOUT_V1_S, .memory = true};
	struct answer *a = e2b_usable_answer(req, &e2b_nothing_form);
	if (decode_lifecycle(a, &body) < 0)
		return;
	a->status = 204;
	a->op = op_pause(
		&a->call, &(struct op_pause){.keep_memory = body.memory, .unless_paused = true});
	answer_run(a);
}

/* ---- the lease ---- */

static void change_lease(struct answer *a, int64_t timeout_s, struct sandbox_change *change)
{
	change->lease_ms = timeout_s * 1000;
	if (!change->lease_ends)
		sandbox_change_gives(change, lease_ms);
	a->status = 204;
	a->op = op_update(&a->call, change);
	answer_run(a);
}

/* {"timeout"}: from now on; without any time left it is up now. */
static void handle_timeout(struct http_request *req)
{
	struct error e = {0};
	struct lifecycle_body body = {0};
	struct answer *a = e2b_usable_answer(req, &e2b_nothing_form);
	const cJSON *message = answer_json(a, &e);
	if (!message ||
		json_decode_known(
			message, timeout_fields, ARRAY_LEN(timeout_fields), "", &body, &e) < 0 ||
		(body.timeout_s > 0 && e2b_check_timeout(body.timeout_s, &e) < 0)) {
		answer_refuse(a, &e);
		return;
	}
	change_lease(
		a, body.timeout_s, &(struct sandbox_change){.lease_ends = body.timeout_s <= 0});
}

/* {"duration"}: a lease that is never shortened. */
static void handle_refresh(struct http_request *req)
{
	struct lifecycle_body body = {.timeout_s = E2B_TIMEOUT_V1_S};
	struct answer *a = e2b_usable_answer(req, &e2b_nothing_form);
	if (decode_lifecycle(a, &body) == 0)
		change_lease(
			a, body.timeout_s, &(struct sandbox_change){.lease_extends_only = true});
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes/{id}/connect", handle_connect_v1, E2B_BODY_LIMIT},
	{HTTP_POST, "/v2/sandboxes/{id}/connect", handle_connect_v2, E2B_BODY_LIMIT},
	{HTTP_POST, "/sandboxes/{id}/pause", e2b_lifecycle_handle_pause, E2B_BODY_LIMIT},
	{HTTP_POST, "/sandboxes/{id}/timeout", handle_timeout, E2B_BODY_LIMIT},
	{HTTP_POST, "/sandboxes/{id}/refreshes", handle_refresh, E2B_BODY_LIMIT},
	/* What SDKs before connect had. */
	{HTTP_POST, "/sandboxes/{id}/resume", handle_connect_v1, E2B_BODY_LIMIT},
};

const struct route_table e2b_lifecycle_table = ROUTE_TABLE(routes);
