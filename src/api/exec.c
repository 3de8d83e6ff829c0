/*
 * POST /v1/sandboxes/{id}/exec and POST /v1/run: files, then a command, then one answer or a
 * stream.
 *
 * A client that goes away while its exec runs leaves the command running: its result can be asked
 * for by execution id. A run's sandbox was made for that one request and ends with it.
 */
#include <stdlib.h>
#include <string.h>

#include "answer/json_body.h"
#include "api/decode.h"
#include "api/result.h"
#include "api/stream.h"
#include "op/exec.h"

static struct answer *exec_answer(struct http_request *req, enum stream_format *format)
{
	*format = stream_format_of(http_header(req, "accept"));
	struct answer *a = api_answer(req, *format == STREAM_NONE ? &result_form : &stream_form);
	if (*format != STREAM_NONE)
		stream_begin(a, *format);
	return a;
}

static void exec_run(struct answer *a, enum stream_format format,
	const struct sandbox_spec *creates, const struct exec_options *options)
{
	const struct op_exec exec = {.spec = options->spec,
		.creates = creates,
		.wants = format == STREAM_NONE ? OP_EXEC_RESULT : OP_EXEC_STREAM,
		.files = options->files,
		.file_count = options->file_count,
		.piece = format == STREAM_NONE ? RESULT_PIECE : 0};
	if (format == STREAM_NONE)
		((struct result *)a->own)->base64 = options->base64;
	else
		((struct stream *)a->own)->base64 = options->base64;
	a->op = op_exec(&a->call, &exec);
	answer_run(a);
}

static void exec_handle(struct http_request *req, bool is_run)
{
	struct error e = {0};
	struct exec_options options = {0};
	struct sandbox_spec spec = {.tenant = tenant_of(req), .ephemeral = true};
	enum stream_format format;
	struct answer *a = exec_answer(req, &format);
	struct scratch *memory = &a->call.memory;
	const cJSON *body = answer_typed_json(a, &e);
	int r = !body    ? -1
		: is_run ? decode_run(body, memory, &spec, &options, &e)
			 : decode_exec(body, memory, &options, &e);
	if (r < 0)
		answer_refuse(a, &e);
	else
		exec_run(a, format, is_run ? &spec : NULL, &options);
}

static void handle_exec(struct http_request *req)
{
	exec_handle(req, false);
}

static void handle_run(struct http_request *req)
{
	exec_handle(req, true);
}

static const struct http_route exec_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/exec", handle_exec, BODY_LIMIT},
	{HTTP_POST, "/v1/run", handle_run, BODY_LIMIT},
};

const struct route_table exec_table = ROUTE_TABLE(exec_routes);
