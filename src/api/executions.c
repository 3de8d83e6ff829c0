/* /v1/executions/{id}: what became of a command, now or when it ends. */
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/result.h"
#include "base/units.h"

#define WAIT_MAX_MS (10 * 60 * 1000)

struct get_call {
	struct http_request *req;
	struct execution *execution; /* NULL once it has been answered */
	struct execution_watcher watcher;
	uv_timer_t timer;
	bool base64;
};

static void respond_live(struct http_request *req, struct execution *x, bool base64)
{
	struct output_copy copies[EXECUTION_STREAMS];
	struct execution_view view;
	execution_view(x, &view);
	execution_copy_output(x, copies);
	respond_result(req, &view, copies, base64);
}

/* ---- waiting for one that runs ---- */

static void call_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void call_end(struct get_call *call)
{
	execution_unwatch(call->execution, &call->watcher);
	uv_close((uv_handle_t *)&call->timer, call_free);
}

static void wait_over(uv_timer_t *timer)
{
	struct get_call *call = timer->data;
	respond_live(call->req, call->execution, call->base64);
	call_end(call);
}

static void wait_changed(void *arg)
{
	struct get_call *call = arg;
	if (execution_has_ended(call->execution))
		wait_over(&call->timer);
}

static void wait_aborted(void *arg)
{
	call_end(arg);
}

static void wait_for_end(struct http_request *req, struct execution *x, int64_t ms, bool base64)
{
	struct get_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->execution = x;
	call->base64 = base64;
	call->watcher = (struct execution_watcher){.changed = wait_changed, .arg = call};
	uv_timer_init(((struct api *)http_ctx(req))->loop, &call->timer);
	call->timer.data = call;
	execution_watch(x, &call->watcher);
	http_on_abort(req, wait_aborted, call);
	uv_timer_start(&call->timer, wait_over, (uint64_t)ms, 0);
}

/* ---- one from the store ---- */

static void load_aborted(void *arg)
{
	((struct get_call *)arg)->req = NULL;
}

static void loaded(
	void *arg, const struct execution_view *view, struct output_copy copies[EXECUTION_STREAMS])
{
	struct get_call *call = arg;
	struct error e;
	if (call->req && view) {
		respond_result(call->req, view, copies, call->base64);
	} else {
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			output_copy_finish(&copies[i]);
		error_set(&e, ERROR_NOT_FOUND, "there is no such execution");
		if (call->req)
			http_respond_error(call->req, &e);
	}
	free(call);
}

static void load(struct http_request *req, const char *id, bool base64)
{
	struct get_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->base64 = base64;
	http_on_abort(req, load_aborted, call);
	execution_load(api_box(req), api_tenant(req), id, loaded, call);
}

static int parse_wait(const char *text, int64_t *ms, struct error *e)
{
	*ms = 0;
	if (text && (units_parse_duration_ms(text, ms) < 0 || *ms > WAIT_MAX_MS))
		return error_set_field(e, ERROR_INVALID_FIELD, "wait",
			"\"wait\" must be a duration of at most 10m, such as \"30s\"");
	return 0;
}

static void handle_get_execution(struct http_request *req)
{
	struct error e;
	bool base64;
	int64_t wait_ms;
	const char *id = http_param(req, "id");
	if (decode_encoding(http_query(req, "encoding"), "encoding", &base64, &e) < 0 ||
		parse_wait(http_query(req, "wait"), &wait_ms, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct execution *x = execution_find(api_box(req), api_tenant(req), id);
	if (!x)
		load(req, id, base64);
	else if (wait_ms > 0 && !execution_has_ended(x))
		wait_for_end(req, x, wait_ms, base64);
	else
		respond_live(req, x, base64);
}

static const struct http_route execution_routes[] = {
	{HTTP_GET, "/v1/executions/{id}", handle_get_execution, 0},
};

const struct api_table execution_table = API_TABLE(execution_routes);
