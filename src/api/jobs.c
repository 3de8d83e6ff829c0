/*
 * /v1/sandboxes/{id}/jobs: commands in the background with a status that says how they went, and a
 * stop that is an end: SIGTERM to everything the job started, SIGKILL when that was not enough.
 */
#include "answer/json_body.h"
#include "api/lookup.h"
#include "api/output.h"
#include "api/processes.h"

#define GRACE_DEFAULT_MS 10000
#define GRACE_MAX_MS     (10 * 60 * 1000)
#define FORCE_WAIT_MS    30000

static void handle_start_job(struct http_request *req)
{
	processes_start(req, EXECUTION_JOB);
}

static void handle_list_jobs(struct http_request *req)
{
	static const struct answer_records records = PROCESS_LIST("jobs");
	static const struct answer_form form = {ANSWER_PACED_LIST(&records)};
	struct error e;
	struct api_page page;
	struct answer *a = process_list_answer(req, &form, http_param(req, "id"));
	if (api_parse_page(req, &page, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_process_list(&a->call, &(struct op_process_list){.running = true,
						  .ended = true,
						  .kinds = 1u << EXECUTION_JOB,
						  .before_ms = page.before_ms,
						  .before_id = page.before_id,
						  .limit = (unsigned)page.limit});
	answer_run(a);
}

/* ---- one ---- */

static void handle_get_job(struct http_request *req)
{
	struct error e;
	struct op_process get = {.process = process_named(req)};
	struct answer *a = process_answer(req, &process_form);
	if (api_parse_wait(req, &get.wait_ms, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_process(&a->call, &get);
	answer_run(a);
}

/* ---- stop ---- */

struct stop_body {
	int64_t grace_ms;
	bool force;
};

static const struct json_field stop_fields[] = {
	{"grace", FIELD_DURATION, offsetof(struct stop_body, grace_ms), 0, 0, GRACE_MAX_MS},
	{"force", FIELD_BOOL, offsetof(struct stop_body, force), 0, 0, 0},
};

static void handle_stop_job(struct http_request *req)
{
	struct error e;
	struct stop_body body = {.grace_ms = GRACE_DEFAULT_MS};
	struct answer *a = process_answer(req, &process_form);
	if (answer_decode_json(a, stop_fields, ARRAY_LEN(stop_fields), &body, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_process(
		&a->call, &(struct op_process){.process = process_named(req),
				  .act = body.force ? OP_PROCESS_KILL : OP_PROCESS_STOP,
				  .grace_ms = body.grace_ms,
				  .wait_ms = (body.force ? 0 : body.grace_ms) + FORCE_WAIT_MS});
	answer_run(a);
}

static const struct http_route job_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/jobs", handle_start_job, BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/jobs", handle_list_jobs, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/jobs/{job}", handle_get_job, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/jobs/{job}/output", output_handle, 0},
	{HTTP_POST, "/v1/sandboxes/{id}/jobs/{job}/stop", handle_stop_job, BODY_LIMIT},
};

const struct route_table jobs_table = ROUTE_TABLE(job_routes);
