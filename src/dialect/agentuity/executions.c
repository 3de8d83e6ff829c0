/*
 * POST /sandbox/{id}/execute, and what became of it.
 *
 * A sandbox runs one execute at a time; the next is told that it is busy. The SDK has no call that
 * cancels: it drops its connections. So an execution that was started here is cancelled when
 * nobody has waited for it for a second. Whoever polls, long-polls or reads its streams waits.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/create.h"
#include "dialect/agentuity/encode.h"
#include "dialect/agentuity/execution_list.h"
#include "dialect/agentuity/waiting.h"

#define YEAR_MS (INT64_C(365) * 24 * 3600 * 1000)

struct execute_body {
	const cJSON *command, *files, *stream;
	int64_t timeout_ms;
};

#define AT(member) offsetof(struct execute_body, member)

static const struct json_field execute_fields[] = {
	{"command", JSON_ARRAY, AT(command), JSON_REQUIRED | JSON_NOT_EMPTY, 0, 4000},
	{"files", JSON_ARRAY, AT(files), 0, 0, 1000},
	{"timeout", JSON_DURATION, AT(timeout_ms), 0, 0, YEAR_MS},
	{"stream", JSON_OBJECT, AT(stream), 0, 0, 0},
};

struct execute_call {
	struct http_request *req; /* NULL once the client has gone */
	struct agentuity *dialect;
	cJSON *body;
	struct scratch memory;
	char *tenant;
	char sandbox_id[ID_SIZE];
	struct execution_spec spec;
	const struct file_spec *files;
	size_t file_count;
	bool ignores[2];
	bool auto_resumed;
};

static void call_free(struct execute_call *call)
{
	scratch_finish(&call->memory);
	cJSON_Delete(call->body);
	free(call->tenant);
	free(call);
}

static void execute_aborted(void *arg)
{
	((struct execute_call *)arg)->req = NULL;
}

static void fail(struct execute_call *call, const struct error *e)
{
	if (call->req)
		http_respond_error(call->req, e);
	call_free(call);
}

static bool is_busy(const struct sandbox *s)
{
	for (struct execution *x = execution_first(s); x; x = execution_next(x)) {
		struct execution_view view;
		execution_view(x, &view);
		if (view.kind == EXECUTION_COMMAND && !execution_has_ended(x))
			return true;
	}
	return false;
}

static void respond_busy(struct http_request *req)
{
	agentuity_respond_failure(req, 409, "SANDBOX_BUSY",
		"the sandbox runs another command: wait for its end, or use a job");
}

static void respond_started(struct execute_call *call, const struct execution *x)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct execution_view view;
	execution_view(x, &view);
	agentuity_begin_data(&w);
	json_begin_object(&w);
	agentuity_put_execution(&w, call->req, &view, call->ignores);
	json_end_object(&w);
	if (call->auto_resumed)
		json_put_bool(&w, "autoResumed", true);
	agentuity_respond_data(call->req, 200, &w);
}

static void start(struct execute_call *call, struct sandbox *s)
{
	struct error e = {0};
	struct execution *x = NULL;
	if (is_busy(s)) {
		respond_busy(call->req);
		call_free(call);
	} else if (execution_start(s, &call->spec, &x, &e) < 0) {
		fail(call, &e);
	} else {
		waiting_guard(call->dialect, x);
		respond_started(call, x);
		call_free(call);
	}
}

static void files_written(void *arg, const struct error *e)
{
	struct execute_call *call = arg;
	struct error gone;
	struct sandbox *s = sandbox_find(call->dialect->box, call->tenant, call->sandbox_id);
	error_set(&gone, ERROR_NOT_FOUND, "there is no such sandbox");
	if (e || !s || !call->req)
		fail(call, e ? e : &gone);
	else
		start(call, s);
}

static void write_files(struct execute_call *call, const struct error *e)
{
	struct sandbox *s = sandbox_find(call->dialect->box, call->tenant, call->sandbox_id);
	if (e || !s || !call->req || call->file_count == 0)
		files_written(call, e);
	else
		files_write(s, &(struct files_owner){0}, call->files, call->file_count,
			files_written, call);
}

static void home_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void home_made(void *arg, const struct file_result *result, const struct error *e)
{
	(void)result;
	write_files(arg, e);
}

/* Whoever was quicker than the create's own answer finds its home there, too. */
static void awake(void *arg, const struct error *e)
{
	static const struct file_events events = {.entry = home_entry, .done = home_made};
	struct execute_call *call = arg;
	struct sandbox_view view;
	struct error failure;
	struct sandbox *s = sandbox_find(call->dialect->box, call->tenant, call->sandbox_id);
	if (e || !s || !call->req) {
		write_files(call, e);
		return;
	}
	sandbox_view(s, &view);
	if (view.executions > 0 || strcmp(view.workdir, AGENTUITY_HOME) != 0)
		write_files(call, NULL);
	else if (agentuity_make_home(s, &events, call, &failure) < 0)
		write_files(call, &failure);
}

static int decode_execute(struct execute_call *call, struct error *e)
{
	struct execute_body fields = {0};
	if (json_decode_known(
		    call->body, execute_fields, ARRAY_LEN(execute_fields), "", &fields, e) < 0 ||
		agentuity_decode_argv(
			fields.command, "command", &call->memory, &call->spec.argv, e) < 0 ||
		agentuity_decode_files(fields.files, "files", &call->memory, &call->files,
			&call->file_count, e) < 0 ||
		agentuity_decode_streams(fields.stream, call->ignores, NULL, e) < 0)
		return -1;
	call->spec.timeout_ms = fields.timeout_ms;
	call->spec.attended = true;
	return 0;
}

/* The answer comes when it runs; a sandbox that is being made or sleeps is waited for. */
static void handle_execute(struct http_request *req)
{
	struct error e = {0};
	struct sandbox_view view;
	struct sandbox *s = agentuity_sandbox(req);
	cJSON *body = s ? agentuity_body(req) : NULL;
	if (!body)
		return;
	struct execute_call *call = calloc(1, sizeof *call);
	if (!call || !(call->tenant = strdup(agentuity_tenant(req))))
		abort();
	call->req = req;
	call->dialect = agentuity_of(req);
	call->body = body;
	sandbox_view(s, &view);
	memcpy(call->sandbox_id, view.id, ID_SIZE);
	if (decode_execute(call, &e) < 0) {
		fail(call, &e);
	} else if (is_busy(s)) {
		respond_busy(req);
		call_free(call);
	} else {
		call->auto_resumed =
			view.status == SANDBOX_PAUSED || view.status == SANDBOX_SUSPENDED;
		http_on_abort(req, execute_aborted, call);
		sandbox_resume(s, true, awake, call);
	}
}

/* ---- one execution ---- */

static void respond_execution(struct http_request *req, struct execution *x)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct execution_view view;
	execution_view(x, &view);
	agentuity_begin_data(&w);
	json_begin_object(&w);
	agentuity_put_execution(&w, req, &view, NULL);
	json_end_object(&w);
	agentuity_respond_data(req, 200, &w);
}

static void respond_missing(struct http_request *req)
{
	agentuity_respond_failure(req, 200, "EXECUTION_NOT_FOUND", "there is no such execution");
}

static void wait_and_respond(struct http_request *req, struct execution *x)
{
	int64_t ms;
	agentuity_query_wait(req, &ms, NULL);
	waiting_for_end(req, x, ms, respond_execution);
}

static void handle_get_execution(struct http_request *req)
{
	struct error e;
	int64_t ms;
	char id[ID_SIZE];
	const struct wanted_execution query = {
		.box = agentuity_of(req)->box, .tenant = agentuity_tenant(req), .id = id};
	if (agentuity_query_wait(req, &ms, &e) < 0)
		http_respond_error(req, &e);
	else if (!agentuity_parse_id(http_param(req, "execution"), "exe_", id))
		respond_missing(req);
	else
		handler_find_execution(req, &query, wait_and_respond, respond_missing);
}

/* ---- all of a sandbox ---- */

static void put_listed(
	struct json_writer *w, const struct http_request *req, const struct execution_view *view)
{
	json_begin_object(w);
	agentuity_put_execution(w, req, view, NULL);
	json_end_object(w);
}

/* Also of a sandbox that is gone. */
static void handle_list_executions(struct http_request *req)
{
	char id[ID_SIZE];
	if (agentuity_parse_id(http_param(req, "id"), "sbx_", id))
		execution_list_respond(req, id, "executions", EXECUTION_COMMAND, put_listed);
	else
		agentuity_respond_failure(
			req, 200, "SANDBOX_NOT_FOUND", "there is no such sandbox");
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/execute", handle_execute, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/execution/{execution}", handle_get_execution, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/sandboxes/{id}/executions", handle_list_executions, AGENTUITY_BODY_LIMIT},
};

const struct agentuity_table agentuity_execution_table = AGENTUITY_TABLE(AGENTUITY_SANDBOX, routes);
