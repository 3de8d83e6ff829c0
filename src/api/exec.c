/*
 * POST /v1/sandboxes/{id}/exec and POST /v1/run: files, then a command, then one answer or a
 * stream.
 *
 * A client that goes away while its exec runs leaves the command running: its result can be asked
 * for by execution id. A run's sandbox was made for that one request and ends with it.
 */
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/result.h"
#include "api/stream.h"
#include "http/sse.h"

struct exec_call {
	struct http_request *req; /* NULL once the client has gone */
	const struct api *api;
	struct box *box;
	const char *tenant;
	bool is_run;
	char sandbox_id[ID_SIZE];
	cJSON *body; /* what the options borrow from */
	struct scratch memory;
	struct exec_options options;
	struct execution *execution;
	struct execution_watcher watcher;
	struct stream stream;
	bool streaming; /* the head of the stream is out */
	bool hungry;    /* the client can take more */
};

static void call_free(struct exec_call *call)
{
	if (call->execution)
		execution_unwatch(call->execution, &call->watcher);
	stream_finish(&call->stream);
	scratch_finish(&call->memory);
	cJSON_Delete(call->body);
	free(call);
}

static void call_fail(struct exec_call *call, const struct error *e)
{
	if (call->req)
		http_respond_error(call->req, e);
	call_free(call);
}

static void destroy_run_sandbox(struct exec_call *call)
{
	struct sandbox *s = sandbox_find(call->box, call->tenant, call->sandbox_id);
	if (call->is_run && s)
		sandbox_destroy(s, NULL, NULL);
}

/* The client is gone. A callback that is still due finds req NULL; with an execution none is. */
static void call_aborted(void *arg)
{
	struct exec_call *call = arg;
	call->req = NULL;
	if (!call->execution)
		return;
	struct execution *x = call->execution;
	execution_unwatch(x, &call->watcher);
	call->execution = NULL;
	if (!call->api->stopping)
		destroy_run_sandbox(call);
	call_free(call);
}

/* ---- answering ---- */

static void respond(struct exec_call *call)
{
	struct output_copy copies[EXECUTION_STREAMS];
	struct execution_view view;
	execution_view(call->execution, &view);
	execution_copy_output(call->execution, copies);
	respond_result(call->req, &view, copies, call->options.base64);
	call_free(call);
}

static void pump(struct exec_call *call)
{
	struct buf events = {0};
	struct http_request *req = call->req;
	if (!call->hungry)
		return;
	bool last = stream_collect(&call->stream, call->execution, &call->watcher, &events);
	if (call->stream.failed) {
		buf_finish(&events);
		call_free(call);
		http_stream_abort(req);
		return;
	}
	if (events.len == 0 && !last)
		return;
	call->hungry = false;
	if (last)
		call_free(call); /* first: a write may find that the client has gone */
	http_stream_write(req, &events);
	if (last)
		http_stream_end(req);
}

static void stream_proceed(void *arg)
{
	struct exec_call *call = arg;
	call->hungry = true;
	pump(call);
}

static void begin_stream(struct exec_call *call)
{
	const struct http_generator generator = {stream_proceed, call_aborted, call};
	call->streaming = true;
	http_add_header(call->req, "Cache-Control", "no-store");
	http_stream_begin(call->req, 200, stream_content_type(call->stream.format), &generator);
	if (call->stream.format == STREAM_SSE)
		sse_keep_alive(call->req);
}

static void execution_changed(void *arg)
{
	struct exec_call *call = arg;
	const struct error *refusal = execution_refusal(call->execution);
	if (refusal) {
		struct error e = *refusal;
		call_fail(call, &e);
	} else if (call->streaming) {
		pump(call);
	} else if (call->stream.format != STREAM_NONE) {
		if (execution_has_started(call->execution))
			begin_stream(call);
	} else if (execution_has_ended(call->execution)) {
		respond(call);
	}
}

/* ---- starting ---- */

static void start(struct exec_call *call)
{
	struct error e = {0};
	struct sandbox *s = sandbox_find(call->box, call->tenant, call->sandbox_id);
	if (!s) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
		call_fail(call, &e);
		return;
	}
	if (execution_start(s, &call->options.spec, &call->execution, &e) < 0) {
		destroy_run_sandbox(call);
		call_fail(call, &e);
		return;
	}
	call->watcher = (struct execution_watcher){.changed = execution_changed,
		.arg = call,
		.paced = call->stream.format != STREAM_NONE};
	execution_watch(call->execution, &call->watcher);
	/* The body may be large, and the command may run for days. */
	scratch_finish(&call->memory);
	cJSON_Delete(call->body);
	call->body = NULL;
}

static void files_written(void *arg, const struct error *e)
{
	struct exec_call *call = arg;
	if (e)
		call_fail(call, e);
	else if (!call->req)
		call_free(call);
	else
		start(call);
}

static struct exec_call *call_new(struct http_request *req, cJSON *body)
{
	struct exec_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->body = body;
	call->api = http_ctx(req);
	call->box = api_box(req);
	call->tenant = api_tenant(req);
	call->stream.format = stream_format_of(http_header(req, "accept"));
	return call;
}

static void handle_exec(struct http_request *req)
{
	struct error e = {0};
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	struct exec_call *call = call_new(req, body);
	if (decode_exec(body, &call->memory, &call->options, &e) < 0) {
		call_fail(call, &e);
		return;
	}
	memcpy(call->sandbox_id, http_param(req, "id"), ID_SIZE);
	call->stream.base64 = call->options.base64;
	http_on_abort(req, call_aborted, call);
	if (call->options.file_count > 0)
		files_write(s,
			&(struct files_owner){call->options.spec.user, call->options.spec.cwd},
			call->options.files, call->options.file_count, files_written, call);
	else
		start(call);
}

static void run_created(void *arg, struct sandbox *s, const struct error *e)
{
	struct exec_call *call = arg;
	struct sandbox_view view;
	if (!s) {
		call_fail(call, e);
		return;
	}
	sandbox_view(s, &view);
	memcpy(call->sandbox_id, view.id, ID_SIZE);
	if (call->req) {
		start(call);
		return;
	}
	destroy_run_sandbox(call);
	call_free(call);
}

static void handle_run(struct http_request *req)
{
	struct error e = {0};
	struct sandbox_spec spec = {.tenant = api_tenant(req), .ephemeral = true};
	cJSON *body = api_body(req);
	if (!body)
		return;
	struct exec_call *call = call_new(req, body);
	call->is_run = true;
	if (decode_run(body, &call->memory, &spec, &call->options, &e) < 0 ||
		sandbox_create(call->box, &spec, run_created, call, &e) < 0) {
		call_fail(call, &e);
		return;
	}
	call->stream.base64 = call->options.base64;
	http_on_abort(req, call_aborted, call);
}

static const struct http_route exec_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/exec", handle_exec, BODY_LIMIT},
	{HTTP_POST, "/v1/run", handle_run, BODY_LIMIT},
};

const struct api_table exec_table = API_TABLE(exec_routes);
