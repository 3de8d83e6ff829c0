/*
 * POST /v1/sandboxes/{id}/code: a piece of a program, run by the interpreter of its language. The
 * code goes to it as it is, by an argument or by stdin when it is long: no shell sees it.
 *
 * `output` is what both streams gave, in the order in which it came. All three are cut at
 * OUTPUT_MAX; what was written is kept as of every execution.
 */
#include "answer/json_body.h"
#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"
#include "op/exec.h"

#define OUTPUT_MAX (1u << 20)

/* The `own` of the form. */
struct code_result {
	const char *language;
	struct buf streams[EXECUTION_STREAMS], output;
	bool cut;
};

static void code_result_finish(struct answer *a)
{
	struct code_result *r = a->own;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		buf_finish(&r->streams[i]);
	buf_finish(&r->output);
}

static void code_result_append(struct code_result *r, struct buf *to, const struct buf *bytes)
{
	size_t room = OUTPUT_MAX - to->len;
	buf_append(to, bytes->data, bytes->len < room ? bytes->len : room);
	r->cut |= bytes->len > room;
}

static void code_result_encode(
	const struct code_result *r, const struct execution_view *ended, struct buf *out)
{
	struct json_writer w = {.out = out};
	struct execution_view view = *ended;
	view.truncated |= r->cut;
	json_begin_object(&w);
	encode_output(&w, "output", &r->output, false);
	encode_output(&w, "stdout", &r->streams[0], false);
	encode_output(&w, "stderr", &r->streams[1], false);
	json_encode(&w, &execution_model, &view, NULL);
	json_end_object(&w);
}

static int code_result_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct code_result *r = a->own;
	(void)e;
	if (event->kind == OP_OUTPUT) {
		code_result_append(r, &r->streams[event->output.stream], event->output.bytes);
		code_result_append(r, &r->output, event->output.bytes);
	} else if (event->kind == OP_EXITED) {
		code_result_encode(r, event->execution, &a->out);
	}
	return 0;
}

static enum answer_failure code_result_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct code_result *r = a->own;
	struct error why = *e;
	if (event && event->reason == OP_NO_PROGRAM)
		error_set_field(e, ERROR_INTERPRETER_NOT_FOUND, "language",
			"the sandbox has no interpreter for %s: %s", r->language, why.message);
	return ANSWER_ERROR;
}

static void handle_code(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct code_result),
		.put = code_result_put,
		.fail = code_result_fail,
		.finish = code_result_finish};
	struct error e;
	struct code_options options = {0};
	struct answer *a = api_answer(req, &form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || decode_code(body, &a->call.memory, &options, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	((struct code_result *)a->own)->language = options.language;
	a->op = op_exec(&a->call, &(struct op_exec){.spec = options.spec,
					  .wants = OP_EXEC_STREAM,
					  .unpaced = true,
					  .needs_program = true});
	answer_run(a);
}

static const struct http_route code_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/code", handle_code, BODY_LIMIT},
};

const struct route_table code_table = ROUTE_TABLE(code_routes);
