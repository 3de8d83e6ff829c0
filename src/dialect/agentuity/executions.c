/*
 * POST /sandbox/{id}/execute, and what became of it.
 *
 * A sandbox runs one execute at a time; the next is told that it is busy. The SDK has no call that
 * cancels: it drops its connections. So an execution that was started here is cancelled when
 * nobody has waited for it for a second. Whoever polls, long-polls or reads its streams waits.
 */
#include "answer/json_body.h"
#include "dialect/agentuity/create.h"
#include "dialect/agentuity/aliases.h"
#include "dialect/agentuity/execution_list.h"
#include "op/exec.h"
#include "op/process.h"

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

struct execute_body {
	const cJSON *command, *files, *stream;
	int64_t timeout_ms;
};

#define AT(member) offsetof(struct execute_body, member)

static const struct json_field execute_fields[] = {
	{"command", FIELD_ARRAY, AT(command), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 4000},
	{"files", FIELD_ARRAY, AT(files), 0, 0, 1000},
	{"timeout", FIELD_DURATION, AT(timeout_ms), 0, 0, YEAR_MS},
	{"stream", FIELD_OBJECT, AT(stream), 0, 0, 0},
};

struct execute {
	bool ignores[2];
};

static int decode_execute(const cJSON *body, struct scratch *memory, struct op_exec *exec,
	bool ignores[2], struct error *e)
{
	struct execute_body fields = {0};
	if (json_decode_known(body, execute_fields, ARRAY_LEN(execute_fields), "", &fields, e) <
			0 ||
		agentuity_decode_argv(fields.command, "command", memory, &exec->spec.argv, e) < 0 ||
		agentuity_decode_files(
			fields.files, "files", memory, &exec->files, &exec->file_count, e) < 0 ||
		agentuity_decode_streams(fields.stream, ignores, NULL, e) < 0)
		return -1;
	exec->spec.timeout_ms = fields.timeout_ms;
	exec->spec.attended = true;
	return 0;
}

static int put_started(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct execute *own = a->own;
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_STARTED)
		return 0;
	agentuity_begin_data(&w);
	agentuity_put_execution(&w, &agentuity_execution, a->req, event->execution, own->ignores);
	if (event->woke)
		json_put_bool(&w, "autoResumed", true);
	json_end_object(&w);
	return 0;
}

static enum answer_failure fail_execute(
	struct answer *a, struct error *e, const struct op_event *event)
{
	if (!event || event->reason != OP_BUSY)
		return agentuity_fail(a, e, event);
	a->status = 409;
	agentuity_put_failure(a->req, &a->out, "SANDBOX_BUSY",
		"the sandbox runs another command: wait for its end, or use a job");
	return ANSWER_PUT;
}

/* The answer comes when it runs; a sandbox that is being made or sleeps is waited for. */
static void agentuity_executions_handle_execute(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct execute),
		.put = put_started,
		.fail = fail_execute};
	/* Whoever was quicker than the create's own answer finds its home there, too. */
	struct op_exec exec = {
		.wants = OP_EXEC_START, .exclusive = true, .wakes = true, .first = &agentuity_home};
	struct error e = {0};
	struct answer *a = agentuity_answer(req, &form);
	struct execute *own = a->own;
	const cJSON *body = answer_json(a, &e);
	if (!body || decode_execute(body, &a->call.memory, &exec, own->ignores, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_exec(&a->call, &exec);
	answer_run(a);
}

/* ---- one execution ---- */

static int execution_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_EXECUTION)
		return 0;
	agentuity_begin_data(&w);
	agentuity_put_execution(&w, &agentuity_execution, a->req, event->execution, NULL);
	json_end_object(&w);
	return 0;
}

static enum answer_failure execution_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	(void)event;
	if (e->code != ERROR_NOT_FOUND)
		return ANSWER_ERROR;
	agentuity_put_failure(a->req, &a->out, "EXECUTION_NOT_FOUND", "there is no such execution");
	return ANSWER_PUT;
}

static int decode_get_execution(
	const struct http_request *req, struct op_process *ret, struct error *e)
{
	if (agentuity_query_wait(req, &ret->wait_ms, e) < 0)
		return -1;
	ret->process.text = agentuity_bare_id(http_param(req, "execution"), "exe_");
	if (ret->process.text)
		return 0;
	return error_set(e, ERROR_NOT_FOUND, "there is no such execution");
}

static void agentuity_executions_handle_get_execution(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = execution_put,
		.fail = execution_fail};
	struct error e;
	struct op_process get = {0};
	struct answer *a = agentuity_answer(req, &form);
	if (decode_get_execution(req, &get, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_process(&a->call, &get);
	answer_run(a);
}

/* ---- all of a sandbox ---- */

static void agentuity_executions_handle_list_executions(struct http_request *req)
{
	execution_list_run(req, "executions", EXECUTION_COMMAND, true, &agentuity_execution);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/execute", agentuity_executions_handle_execute, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/execution/{execution}", agentuity_executions_handle_get_execution,
		AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}/executions", agentuity_executions_handle_list_executions,
		AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_execution_table = ROUTE_TABLE(routes);
