/*
 * /v1/sandboxes/{id}/processes: commands that run in the background, and whatever else runs there.
 * A process is named by its id, its pid or its name.
 */
#include "api/processes.h"

#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/encode.h"
#include "api/lookup.h"
#include "api/output.h"

#define INSPECT_MS 2000
#define KILL_MS    30000

static void respond_process(struct http_request *req, int status, const struct execution *x,
	const struct execution_usage *usage)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct execution_view view;
	execution_view(x, &view);
	json_begin_object(&w);
	encode_process(&w, &view);
	if (usage)
		encode_usage(&w, usage);
	json_end_object(&w);
	api_respond_json(req, status, &body);
}

/* ---- start ---- */

struct start_call {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
	void (*started)(struct http_request *req, struct execution *x);
};

static void start_call_end(struct start_call *call)
{
	execution_unwatch(call->execution, &call->watcher);
	free(call);
}

static void start_changed(void *arg)
{
	struct start_call *call = arg;
	const struct error *refusal = execution_refusal(call->execution);
	if (refusal)
		http_respond_error(call->req, refusal);
	else if (execution_has_started(call->execution))
		call->started(call->req, call->execution);
	else
		return;
	start_call_end(call);
}

/* It goes on without the one who asked for it. */
static void start_aborted(void *arg)
{
	start_call_end(arg);
}

void processes_start(struct http_request *req, enum execution_kind kind,
	void (*started)(struct http_request *req, struct execution *x))
{
	struct error e;
	struct scratch memory = {0};
	struct execution_spec spec = {.kind = kind};
	struct execution *x = NULL;
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	int r = decode_process(body, &memory, &spec, &e);
	if (r == 0 && kind == EXECUTION_JOB && spec.name && execution_find_name(s, spec.name))
		r = error_set_field(&e, ERROR_NAME_TAKEN, "name",
			"something with the name '%.64s' runs in the sandbox already", spec.name);
	if (r == 0)
		r = execution_start(s, &spec, &x, &e);
	scratch_finish(&memory);
	cJSON_Delete(body);
	if (r < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct start_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	*call = (struct start_call){.req = req, .execution = x, .started = started};
	call->watcher = (struct execution_watcher){.changed = start_changed, .arg = call};
	execution_watch(x, &call->watcher);
	http_on_abort(req, start_aborted, call);
}

static void process_started(struct http_request *req, struct execution *x)
{
	respond_process(req, 201, x, NULL);
}

static void handle_start_process(struct http_request *req)
{
	processes_start(req, EXECUTION_PROCESS, process_started);
}

/* ---- list ---- */

static void list_running(struct http_request *req, const struct sandbox *s)
{
	const char *name = http_query(req, "name");
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct execution_view view;
	json_begin_object(&w);
	json_key(&w, "processes");
	json_begin_array(&w);
	for (struct execution *x = execution_first(s); x; x = execution_next(x)) {
		execution_view(x, &view);
		if (execution_has_ended(x) || (name && strcmp(view.name, name) != 0))
			continue;
		json_begin_object(&w);
		encode_process(&w, &view);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static void handle_list_processes(struct http_request *req)
{
	struct error e;
	struct api_page page;
	const char *status = http_query(req, "status");
	bool ended = status && strcmp(status, "ended") == 0;
	if (status && !ended && strcmp(status, "running") != 0) {
		error_set_field(&e, ERROR_INVALID_FIELD, "status",
			"\"status\" must be \"running\" or \"ended\"");
		http_respond_error(req, &e);
	} else if (ended && api_parse_page(req, &page, &e) < 0) {
		http_respond_error(req, &e);
	} else if (ended) {
		/* Also of a sandbox that is gone: what is not this tenant's is not found. */
		api_list(req, "processes", http_param(req, "id"), 0, NULL, &page);
	} else {
		const struct sandbox *s = api_sandbox(req);
		if (s)
			list_running(req, s);
	}
}

/* ---- one ---- */

struct inspect_call {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
	struct execution_inspection inspection;
	uv_timer_t timer; /* a paused sandbox's init does not answer */
};

static void inspect_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void inspect_end(struct inspect_call *call)
{
	execution_unwatch(call->execution, &call->watcher);
	uv_close((uv_handle_t *)&call->timer, inspect_free);
}

static void inspect_done(void *arg, const struct execution_usage *usage)
{
	struct inspect_call *call = arg;
	respond_process(call->req, 200, call->execution, usage);
	inspect_end(call);
}

static void inspect_late(uv_timer_t *timer)
{
	struct inspect_call *call = timer->data;
	execution_uninspect(call->execution, &call->inspection);
	inspect_done(call, NULL);
}

static void inspect_aborted(void *arg)
{
	struct inspect_call *call = arg;
	execution_uninspect(call->execution, &call->inspection);
	inspect_end(call);
}

static void inspect_nothing(void *arg)
{
	(void)arg; /* the end comes by inspect_done */
}

static void inspect(struct http_request *req, struct execution *x)
{
	if (execution_has_ended(x)) {
		respond_process(req, 200, x, NULL);
		return;
	}
	struct inspect_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->execution = x;
	call->watcher = (struct execution_watcher){.changed = inspect_nothing, .arg = call};
	call->inspection = (struct execution_inspection){.done = inspect_done, .arg = call};
	uv_timer_init(server_of(req)->loop, &call->timer);
	call->timer.data = call;
	uv_timer_start(&call->timer, inspect_late, INSPECT_MS, 0);
	execution_watch(x, &call->watcher);
	http_on_abort(req, inspect_aborted, call);
	execution_inspect(x, &call->inspection);
}

static void wait_and_inspect(struct http_request *req, struct execution *x)
{
	int64_t wait_ms;
	api_parse_wait(req, &wait_ms, NULL);
	api_wait_for_end(req, x, wait_ms, inspect);
}

static void handle_get_process(struct http_request *req)
{
	struct error e;
	int64_t wait_ms;
	if (api_parse_wait(req, &wait_ms, &e) < 0)
		http_respond_error(req, &e);
	else
		api_find_execution(req, wait_and_inspect);
}

static void handle_get_output(struct http_request *req)
{
	api_find_execution(req, output_attach);
}

static void respond_killed(struct http_request *req, struct execution *x)
{
	(void)x;
	http_respond(req, 204, NULL, NULL);
}

static void kill_and_wait(struct http_request *req, struct execution *x)
{
	execution_cancel(x);
	api_wait_for_end(req, x, KILL_MS, respond_killed);
}

static void handle_delete_process(struct http_request *req)
{
	api_find_execution(req, kill_and_wait);
}

static const struct http_route process_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/processes", handle_start_process, BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes/{id}/processes", handle_list_processes, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/processes/{process}", handle_get_process, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}/processes/{process}", handle_delete_process, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/processes/{process}/output", handle_get_output, 0},
};

const struct route_table processes_table = ROUTE_TABLE(process_routes);
