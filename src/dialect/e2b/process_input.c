/*
 * SendInput, and what it shares with StreamInput. An answer says that the bytes are on their way
 * within the window of the process's stdin; a process that does not read makes its writers wait.
 */
#include "dialect/e2b/process_input.h"

#include <stddef.h>

/* ---- messages ---- */

struct input_message {
	const cJSON *process, *input;
};

static const struct json_field input_fields[] = {
	{"process", FIELD_OBJECT, offsetof(struct input_message, process), 0, 0, 0},
	{"input", FIELD_OBJECT, offsetof(struct input_message, input), FIELD_REQUIRED, 0, 0},
};

struct bytes_message {
	const char *to_stdin, *to_pty;
};

static const struct json_field bytes_fields[] = {
	{"stdin", FIELD_TEXT, offsetof(struct bytes_message, to_stdin), 0, 0, RPC_BODY_LIMIT},
	{"pty", FIELD_TEXT, offsetof(struct bytes_message, to_pty), 0, 0, RPC_BODY_LIMIT},
};

int input_decode(const cJSON *input, struct scratch *memory, const char **bytes, size_t *len,
	struct error *e)
{
	struct bytes_message fields = {0};
	if (json_decode_known(input, bytes_fields, ARRAY_LEN(bytes_fields), "input.", &fields, e) <
		0)
		return -1;
	const char *text = fields.to_pty ? fields.to_pty : fields.to_stdin;
	if (!text)
		return error_set_field(
			e, ERROR_MISSING_FIELD, "input", "\"input\" must have stdin or pty");
	return json_bytes(text, "input", memory, bytes, len, e);
}

void input_explain(struct error *e)
{
	if (e->code == ERROR_STDIN_CLOSED)
		error_set(e, ERROR_INTERNAL, "error writing to stdin: stdin not enabled or closed");
}

/* ---- SendInput ---- */

static enum answer_failure input_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	input_explain(e);
	return process_call_fail(a, e, event);
}

static int decode_send_input(
	struct answer *a, const cJSON *message, const char **bytes, size_t *len, struct error *e)
{
	struct input_message fields = {0};
	struct process_call *call = a->own;
	if (json_decode_known(message, input_fields, ARRAY_LEN(input_fields), "", &fields, e) < 0 ||
		process_decode_selector(fields.process, &call->selector, e) < 0)
		return -1;
	return input_decode(fields.input, &a->call.memory, bytes, len, e);
}

static void handle_send_input(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct process_call),
		.put = rpc_put_empty,
		.fail = input_fail};
	struct error e = {0};
	const char *bytes = NULL;
	size_t len = 0;
	struct answer *a = envd_answer(req, &form);
	const struct process_call *call = a->own;
	const cJSON *message = rpc_message(a, &e);
	if (!message || decode_send_input(a, message, &bytes, &len, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_input(&a->call, &(struct op_input){.process = process_ref(&call->selector)});
	op_put(a->op, &(struct op_item){OP_ITEM_DATA, .bytes = {bytes, len}});
	op_put(a->op, &(struct op_item){OP_ITEM_END});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/SendInput", handle_send_input, RPC_BODY_LIMIT},
};

const struct route_table process_input_table = ROUTE_TABLE(routes);
