/*
 * /sandbox/sandboxes/{id}/jobs: commands that outlive their request. They do not make the sandbox
 * busy, and nobody has to wait for them.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/create.h"
#include "dialect/agentuity/encode.h"
#include "dialect/agentuity/execution_list.h"
#include "dialect/agentuity/waiting.h"

#define GRACE_MS 10000
#define FORCE_MS 30000

struct job_body {
	const cJSON *command, *streams;
};

static const struct json_field job_fields[] = {
	{"command", JSON_ARRAY, offsetof(struct job_body, command), JSON_REQUIRED | JSON_NOT_EMPTY,
		0, 4000},
	{"streams", JSON_OBJECT, offsetof(struct job_body, streams), 0, 0, 0},
};

/* Agentuity's jobs have no timeout; one that the server ended has failed. */
static const char *job_status(const struct execution_view *view)
{
	switch (view->status) {
	case EXECUTION_QUEUED:
		return "pending";
	case EXECUTION_TIMEOUT:
		return "failed";
	default:
		return execution_status_name(view->status);
	}
}

static void put_job(
	struct json_writer *w, const struct http_request *req, const struct execution_view *view)
{
	bool ended = view->status > EXECUTION_RUNNING;
	json_begin_object(w);
	agentuity_put_id(w, "jobId", "job_", view->id);
	agentuity_put_id(w, "sandboxId", "sbx_", view->sandbox_id);
	agentuity_put_list(w, "command", view->command, view->command_len);
	json_put_string(w, "status", job_status(view));
	json_put_time(w, "startedAt", view->started_ms);
	if (ended) {
		json_put_int(w, "exitCode", view->exit_code);
		json_put_time(w, "completedAt", view->started_ms + view->duration_us / 1000);
	}
	const char *reason = agentuity_failure(view);
	if (reason)
		json_put_string(w, "error", reason);
	agentuity_put_stream_urls(w, req, view->id);
	json_end_object(w);
}

static void respond_job(struct http_request *req, int status, const struct execution *x)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct execution_view view;
	execution_view(x, &view);
	agentuity_begin_data(&w);
	put_job(&w, req, &view);
	agentuity_respond_data(req, status, &w);
}

/* ---- start ---- */

static void handle_create(struct http_request *req)
{
	struct error e = {0};
	struct job_body fields = {0};
	autoscratch memory = {0};
	struct execution *x = NULL;
	bool ignores[2] = {false, false};
	struct execution_spec spec = {.kind = EXECUTION_JOB};
	struct sandbox *s = agentuity_sandbox(req);
	cJSON *body = s ? agentuity_body(req) : NULL;
	if (!body)
		return;
	if (json_decode_known(body, job_fields, ARRAY_LEN(job_fields), "", &fields, &e) < 0 ||
		agentuity_decode_argv(fields.command, "command", &memory, &spec.argv, &e) < 0 ||
		agentuity_decode_streams(fields.streams, ignores, NULL, &e) < 0 ||
		execution_start(s, &spec, &x, &e) < 0)
		http_respond_error(req, &e);
	else
		respond_job(req, 201, x);
	cJSON_Delete(body);
}

/* ---- one ---- */

static void respond_missing(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such job");
	http_respond_error(req, &e);
}

static void find_job(struct http_request *req, handler_execution_fn *found)
{
	char sandbox_id[ID_SIZE], id[ID_SIZE];
	const struct wanted_execution query = {.box = server_of(req)->box,
		.tenant = tenant_of(req),
		.sandbox_id = sandbox_id,
		.id = id,
		.kinds = 1u << EXECUTION_JOB};
	if (agentuity_parse_id(http_param(req, "id"), "sbx_", sandbox_id) &&
		agentuity_parse_id(http_param(req, "job"), "job_", id))
		handler_find_execution(req, &query, found, respond_missing);
	else
		respond_missing(req);
}

static void respond_ok(struct http_request *req, struct execution *x)
{
	respond_job(req, 200, x);
}

static void handle_get(struct http_request *req)
{
	find_job(req, respond_ok);
}

/* ---- stop ---- */

static void stop(struct http_request *req, struct execution *x)
{
	const char *force = http_query(req, "force");
	bool at_once = force && strcmp(force, "true") == 0;
	if (at_once)
		execution_cancel(x);
	else
		execution_stop(x, GRACE_MS);
	waiting_for_end(req, x, GRACE_MS + FORCE_MS, respond_ok);
}

static void handle_stop(struct http_request *req)
{
	find_job(req, stop);
}

/* ---- all of a sandbox ---- */

static void handle_list(struct http_request *req)
{
	struct sandbox_view view;
	struct sandbox *s = agentuity_sandbox(req);
	if (!s)
		return;
	sandbox_view(s, &view);
	execution_list_respond(req, view.id, "jobs", EXECUTION_JOB, put_job);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes/{id}/jobs", handle_create, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}/jobs", handle_list, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}/jobs/{job}", handle_get, AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/sandboxes/{id}/jobs/{job}", handle_stop, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_job_table = ROUTE_TABLE(routes);
