/*
 * /v1/sandboxes/{id}/processes: commands that run in the background, and whatever else runs there.
 * A process is named by its id, its pid or its name.
 */
#include "api/processes.h"

#include <string.h>

#include "answer/json_body.h"
#include "api/decode.h"
#include "api/lookup.h"
#include "api/output.h"
#include "op/exec.h"

#define KILL_MS 30000

/* ---- which, and how it is put ---- */

struct answer *process_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = api_answer(req, form);
	a->call.finds_gone = true;
	if (!http_param(req, "process") && !http_param(req, "job"))
		a->call.sandbox = NULL; /* {id} is the execution's */
	return a;
}

struct execution_ref process_named(const struct http_request *req)
{
	const char *job = http_param(req, "job"), *process = http_param(req, "process");
	if (job)
		return (struct execution_ref){
			.by = EXECUTION_BY_ANY, .text = job, .kinds = 1u << EXECUTION_JOB};
	if (process)
		return (struct execution_ref){.by = EXECUTION_BY_ANY, .text = process};
	return (struct execution_ref){.by = EXECUTION_BY_ID, .text = http_param(req, "id")};
}

enum answer_failure process_fail(struct answer *a, struct error *e, const struct op_event *event)
{
	if (event && event->reason == OP_NO_EXECUTION)
		error_set(e, ERROR_NOT_FOUND, "there is no such %s",
			http_param(a->req, "process") ? "process"
			: http_param(a->req, "job")   ? "job"
						      : "execution");
	return ANSWER_ERROR;
}

static int process_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind == OP_STARTED)
		a->status = 201;
	else if (event->kind != OP_EXECUTION)
		return 0;
	json_begin_object(&w);
	json_encode(&w, &process_model, event->execution, NULL);
	if (event->usage)
		json_encode(&w, &execution_usage_model, event->usage, NULL);
	json_end_object(&w);
	return 0;
}

const struct answer_form process_form = {
	.type = "application/json", .pace = ANSWER_WHOLE, .put = process_put, .fail = process_fail};

static int process_done_put(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)event;
	(void)e;
	a->status = 204;
	return 0;
}

const struct answer_form process_done_form = {
	.pace = ANSWER_WHOLE, .put = process_done_put, .fail = process_fail};

/* ---- start ---- */

void processes_start(struct http_request *req, enum execution_kind kind)
{
	struct error e;
	struct op_exec exec = {
		.wants = OP_EXEC_LAUNCH, .spec.kind = kind, .unique_name = kind == EXECUTION_JOB};
	struct answer *a = api_answer(req, &process_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || decode_process(body, &a->call.memory, &exec.spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_exec(&a->call, &exec);
	answer_run(a);
}

static void handle_start_process(struct http_request *req)
{
	processes_start(req, EXECUTION_PROCESS);
}

/* ---- list ---- */

/* A page begins behind the last ended process of the page before. */
int64_t process_place(const void *record, const char **id)
{
	const struct execution_view *view = record;
	if (view->status > EXECUTION_RUNNING)
		*id = view->id;
	return view->started_ms;
}

struct answer *process_list_answer(
	struct http_request *req, const struct answer_form *form, const char *sandbox)
{
	struct answer *a = api_answer(req, form);
	answer_name_sandbox(a, sandbox);
	a->call.finds_gone = true;
	return a;
}

static int api_processes_parse_status(const struct http_request *req, bool *ended, struct error *e)
{
	const char *status = http_query(req, "status");
	*ended = status && strcmp(status, "ended") == 0;
	if (!status || *ended || strcmp(status, "running") == 0)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "status", "\"status\" must be \"running\" or \"ended\"");
}

static void handle_list_processes(struct http_request *req)
{
	static const struct answer_records records = PROCESS_LIST("processes");
	static const struct answer_form form = {ANSWER_PACED_LIST(&records)};
	struct error e;
	struct api_page page = {0};
	bool ended = false;
	struct answer *a = process_list_answer(req, &form, http_param(req, "id"));
	if (api_processes_parse_status(req, &ended, &e) < 0 ||
		(ended && api_parse_page(req, &page, &e) < 0)) {
		answer_refuse(a, &e);
		return;
	}
	a->call.finds_gone = ended;
	a->op = op_process_list(&a->call, &(struct op_process_list){.running = !ended,
						  .ended = ended,
						  .name = http_query(req, "name"),
						  .before_ms = page.before_ms,
						  .before_id = page.before_id,
						  .limit = (unsigned)page.limit});
	answer_run(a);
}

/* ---- one ---- */

static void handle_get_process(struct http_request *req)
{
	struct error e;
	struct op_process get = {.process = process_named(req), .usage = true};
	struct answer *a = process_answer(req, &process_form);
	if (api_parse_wait(req, &get.wait_ms, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_process(&a->call, &get);
	answer_run(a);
}

static void handle_delete_process(struct http_request *req)
{
	struct answer *a = process_answer(req, &process_done_form);
	a->op = op_process(&a->call,
		&(struct op_process){
			.process = process_named(req), .act = OP_PROCESS_KILL, .wait_ms = KILL_MS});
	answer_run(a);
}

static const struct http_route process_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/processes", handle_start_process, BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/processes", handle_list_processes, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/processes/{process}", handle_get_process, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}/processes/{process}", handle_delete_process, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/processes/{process}/output", output_handle, 0},
};

const struct route_table processes_table = ROUTE_TABLE(process_routes);
