/*
 * /sandbox/sandboxes/{id}/jobs: commands that outlive their request. They do not make the sandbox
 * busy, and nobody has to wait for them.
 */
#include <string.h>

#include "answer/json_body.h"
#include "dialect/agentuity/create.h"
#include "dialect/agentuity/aliases.h"
#include "dialect/agentuity/execution_list.h"
#include "op/exec.h"
#include "op/process.h"

#define GRACE_MS 10000
#define FORCE_MS 30000

struct job_body {
	const cJSON *command, *streams;
};

static const struct json_field job_fields[] = {
	{"command", FIELD_ARRAY, offsetof(struct job_body, command),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 4000},
	{"streams", FIELD_OBJECT, offsetof(struct job_body, streams), 0, 0, 0},
};

static int job_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind == OP_STARTED)
		a->status = 201;
	else if (event->kind != OP_EXECUTION)
		return 0;
	agentuity_begin_data(&w);
	agentuity_put_execution(&w, &agentuity_job, a->req, event->execution, NULL);
	json_end_object(&w);
	return 0;
}

/* ---- start ---- */

static int decode_job(struct answer *a, struct execution_spec *spec, struct error *e)
{
	struct job_body fields = {0};
	bool ignores[2] = {false, false};
	const cJSON *body = answer_json(a, e);
	if (!body ||
		json_decode_known(body, job_fields, ARRAY_LEN(job_fields), "", &fields, e) < 0 ||
		agentuity_decode_argv(fields.command, "command", &a->call.memory, &spec->argv, e) <
			0)
		return -1;
	return agentuity_decode_streams(fields.streams, ignores, NULL, e);
}

static void agentuity_jobs_handle_create(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = job_put,
		.fail = agentuity_fail};
	struct error e = {0};
	struct op_exec exec = {.wants = OP_EXEC_START, .spec.kind = EXECUTION_JOB};
	struct answer *a = agentuity_answer(req, &form);
	if (decode_job(a, &exec.spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_exec(&a->call, &exec);
	answer_run(a);
}

/* ---- one ---- */

static enum answer_failure job_fail(struct answer *a, struct error *e, const struct op_event *event)
{
	(void)a;
	(void)event;
	if (e->code == ERROR_NOT_FOUND)
		error_set(e, ERROR_NOT_FOUND, "there is no such job");
	return ANSWER_ERROR;
}

static void job_run(struct http_request *req, struct op_process *request)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = job_put, .fail = job_fail};
	struct error e;
	const char *id = agentuity_bare_id(http_param(req, "job"), "job_");
	struct answer *a = agentuity_answer(req, &form);
	a->call.finds_gone = true;
	if (!id || !agentuity_bare_id(http_param(req, "id"), "sbx_")) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such job");
		answer_refuse(a, &e);
		return;
	}
	request->process = (struct execution_ref){.text = id, .kinds = 1u << EXECUTION_JOB};
	a->op = op_process(&a->call, request);
	answer_run(a);
}

static void agentuity_jobs_handle_get(struct http_request *req)
{
	job_run(req, &(struct op_process){0});
}

static void handle_stop(struct http_request *req)
{
	const char *force = http_query(req, "force");
	bool at_once = force && strcmp(force, "true") == 0;
	job_run(req, &(struct op_process){.act = at_once ? OP_PROCESS_KILL : OP_PROCESS_STOP,
			     .grace_ms = GRACE_MS,
			     .wait_ms = GRACE_MS + FORCE_MS});
}

/* ---- all of a sandbox ---- */

static void agentuity_jobs_handle_list(struct http_request *req)
{
	execution_list_run(req, "jobs", EXECUTION_JOB, false, &agentuity_job);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes/{id}/jobs", agentuity_jobs_handle_create, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}/jobs", agentuity_jobs_handle_list, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}/jobs/{job}", agentuity_jobs_handle_get, AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/sandboxes/{id}/jobs/{job}", handle_stop, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_job_table = ROUTE_TABLE(routes);
