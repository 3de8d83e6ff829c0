/*
 * POST /v1/sandboxes/{id}/code: a piece of a program, run by the interpreter of its language. The
 * code goes to it as it is, by an argument or by stdin when it is long: no shell sees it.
 *
 * `output` is what both streams gave, in the order in which it came. All three are cut at
 * OUTPUT_MAX; what was written is kept as of every execution.
 */
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"

#define OUTPUT_MAX (1u << 20)
#define CHUNK      (64u * 1024)

struct code_call {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
	const char *language;
	struct buf streams[EXECUTION_STREAMS], output;
	bool cut;
};

static void call_free(struct code_call *call)
{
	execution_unwatch(call->execution, &call->watcher);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		buf_finish(&call->streams[i]);
	buf_finish(&call->output);
	free(call);
}

/* The command goes on; its result stays under its id. */
static void call_aborted(void *arg)
{
	call_free(arg);
}

static void append_cut(struct code_call *call, struct buf *to, const struct buf *bytes)
{
	size_t room = OUTPUT_MAX - to->len;
	buf_append(to, bytes->data, bytes->len < room ? bytes->len : room);
	call->cut |= bytes->len > room;
}

/* True when something was read. */
static bool collect(struct code_call *call, unsigned stream)
{
	autobuf bytes = {0};
	uint64_t before = call->watcher.position[stream];
	if (!execution_read(call->execution, &call->watcher, stream, CHUNK, &bytes))
		return false;
	append_cut(call, &call->streams[stream], &bytes);
	append_cut(call, &call->output, &bytes);
	return call->watcher.position[stream] > before;
}

static void respond(struct code_call *call)
{
	struct http_request *req = call->req;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct execution_view view;
	execution_view(call->execution, &view);
	json_begin_object(&w);
	encode_output(&w, "output", &call->output, false);
	encode_output(&w, "stdout", &call->streams[0], false);
	encode_output(&w, "stderr", &call->streams[1], false);
	view.truncated |= call->cut;
	encode_execution(&w, &view);
	json_end_object(&w);
	call_free(call);
	api_respond_json(req, 200, &body);
}

static void fail(struct code_call *call, const struct error *e)
{
	struct http_request *req = call->req;
	struct error copy = *e;
	call_free(call);
	http_respond_error(req, &copy);
}

static void fail_without_program(struct code_call *call)
{
	struct error e;
	struct execution_view view;
	execution_view(call->execution, &view);
	error_set_field(&e, ERROR_INTERPRETER_NOT_FOUND, "language",
		"the sandbox has no interpreter for %s: '%.64s' is not there", call->language,
		view.command_len ? view.command : "");
	fail(call, &e);
}

static void call_changed(void *arg)
{
	struct code_call *call = arg;
	bool more = true;
	if (execution_refusal(call->execution)) {
		fail(call, execution_refusal(call->execution));
		return;
	}
	while (more) {
		more = false;
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			more |= collect(call, i);
	}
	if (execution_has_no_program(call->execution))
		fail_without_program(call);
	else if (execution_has_ended(call->execution))
		respond(call);
}

static void handle_code(struct http_request *req)
{
	struct error e;
	struct scratch memory = {0};
	struct code_options options = {0};
	struct execution *x = NULL;
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	int r = decode_code(body, &memory, &options, &e);
	if (r == 0)
		r = execution_start(s, &options.spec, &x, &e);
	scratch_finish(&memory);
	cJSON_Delete(body);
	if (r < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct code_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->execution = x;
	call->language = options.language;
	call->watcher = (struct execution_watcher){.changed = call_changed, .arg = call};
	execution_watch(x, &call->watcher);
	http_on_abort(req, call_aborted, call);
}

static const struct http_route code_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/code", handle_code, BODY_LIMIT},
};

const struct route_table code_table = ROUTE_TABLE(code_routes);
