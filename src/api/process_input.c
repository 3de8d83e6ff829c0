/*
 * POST …/stdin: the body's bytes for a process that was started with an open stdin, as they come.
 *
 *     ?offset=N     what the body begins with, counted from the first byte of stdin; bytes that
 *                   the process has got already are passed over, so a request can be repeated
 *     ?close=true   end of stdin behind the body
 *
 * The answer comes when the process's pipe has taken all of it: what is acknowledged is not lost
 * with us. While the process does not read, the client waits.
 */
#include <stdlib.h>

#include "answer/query.h"
#include "api/processes.h"

static int api_process_input_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_EXECUTION)
		return 0;
	json_begin_object(&w);
	json_put_int(&w, "offset", (int64_t)event->execution->input_offset);
	json_put_bool(&w, "open", event->execution->input_open);
	json_end_object(&w);
	return 0;
}

static ptrdiff_t input_data(struct answer *a, const char *bytes, size_t len, struct error *e)
{
	(void)e;
	op_put(a->op, &(struct op_item){OP_ITEM_DATA, .bytes = {bytes, len}});
	return (ptrdiff_t)len;
}

static int api_process_input_end(struct answer *a, struct error *e)
{
	(void)a;
	(void)e;
	return 0;
}

static int api_process_input_parse_offset(const char *text, struct op_input *ret, struct error *e)
{
	char *end;
	if (!text)
		return 0;
	ret->at_offset = true;
	ret->offset = strtoull(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "offset", "\"offset\" must be a number of bytes");
}

static void handle_stdin(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = api_process_input_put,
		.fail = process_fail};
	static const struct answer_body body = {input_data, api_process_input_end};
	struct error e;
	struct op_input input = {
		.process = process_named(req), .while_read = true, .until_taken = true};
	struct answer *a = process_answer(req, &form);
	if (api_process_input_parse_offset(http_query(req, "offset"), &input, &e) < 0 ||
		query_bool(req, "close", &input.closes, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_input(&a->call, &input);
	answer_run_with_body(a, &body);
}

static const struct http_route process_input_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/processes/{process}/stdin", handle_stdin, INT64_MAX, true},
};

const struct route_table processes_input_table = ROUTE_TABLE(process_input_routes);
