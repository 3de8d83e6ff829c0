/*
 * /v1/sandboxes/{id}/jobs: commands in the background with a status that says how they went, and a
 * stop that is an end: SIGTERM to everything the job started, SIGKILL when that was not enough.
 */
#include "api/encode.h"
#include "api/lookup.h"
#include "api/output.h"
#include "api/processes.h"

#define GRACE_DEFAULT_MS 10000
#define GRACE_MAX_MS     (10 * 60 * 1000)
#define FORCE_WAIT_MS    30000

static void respond_job(struct http_request *req, int status, const struct execution *x)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct execution_view view;
	execution_view(x, &view);
	json_begin_object(&w);
	encode_process(&w, &view);
	json_end_object(&w);
	api_respond_json(req, status, &body);
}

static void job_started(struct http_request *req, struct execution *x)
{
	respond_job(req, 201, x);
}

static void handle_start_job(struct http_request *req)
{
	processes_start(req, EXECUTION_JOB, job_started);
}

static void handle_list_jobs(struct http_request *req)
{
	struct error e;
	struct api_page page;
	const char *id = http_param(req, "id");
	if (api_parse_page(req, &page, &e) < 0)
		http_respond_error(req, &e);
	else
		api_list(req, "jobs", id, 1u << EXECUTION_JOB,
			sandbox_find(server_of(req)->box, tenant_of(req), id), &page);
}

/* ---- one ---- */

static void respond_found(struct http_request *req, struct execution *x)
{
	respond_job(req, 200, x);
}

static void wait_and_respond(struct http_request *req, struct execution *x)
{
	int64_t wait_ms;
	api_parse_wait(req, &wait_ms, NULL);
	api_wait_for_end(req, x, wait_ms, respond_found);
}

static void handle_get_job(struct http_request *req)
{
	struct error e;
	int64_t wait_ms;
	if (api_parse_wait(req, &wait_ms, &e) < 0)
		http_respond_error(req, &e);
	else
		api_find_execution(req, wait_and_respond);
}

static void handle_get_job_output(struct http_request *req)
{
	api_find_execution(req, output_attach);
}

/* ---- stop ---- */

struct stop_body {
	int64_t grace_ms;
	bool force;
};

static const struct json_field stop_fields[] = {
	{"grace", JSON_DURATION, offsetof(struct stop_body, grace_ms), 0, 0, GRACE_MAX_MS},
	{"force", JSON_BOOL, offsetof(struct stop_body, force), 0, 0, 0},
};

static void stop(struct http_request *req, struct execution *x)
{
	struct stop_body body = {.grace_ms = GRACE_DEFAULT_MS};
	if (api_optional_body(req, stop_fields, ARRAY_LEN(stop_fields), &body) < 0)
		return;
	if (body.force)
		execution_cancel(x);
	else
		execution_stop(x, body.grace_ms);
	api_wait_for_end(req, x, (body.force ? 0 : body.grace_ms) + FORCE_WAIT_MS, respond_found);
}

static void handle_stop_job(struct http_request *req)
{
	api_find_execution(req, stop);
}

static const struct http_route job_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/jobs", handle_start_job, BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/jobs", handle_list_jobs, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/jobs/{job}", handle_get_job, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/jobs/{job}/output", handle_get_job_output, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/jobs/{job}/stop", handle_stop_job, BODY_LIMIT},
};

const struct route_table jobs_table = ROUTE_TABLE(job_routes);
