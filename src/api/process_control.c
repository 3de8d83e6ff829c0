/* Control of a running process: signals, the size of its terminal. */
#include "answer/json_body.h"
#include "api/processes.h"

static void api_process_control_process_tell(
	struct answer *a, struct op_process *request, int decoded, const struct error *e)
{
	if (decoded < 0) {
		answer_refuse(a, e);
		return;
	}
	request->only_running = true;
	a->op = op_process(&a->call, request);
	answer_run(a);
}

/* ---- signals ---- */

struct signal_body {
	const char *signal;
	bool tree;
};

static const struct json_field signal_fields[] = {
	{"signal", FIELD_TEXT, offsetof(struct signal_body, signal),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, 16},
	{"tree", FIELD_BOOL, offsetof(struct signal_body, tree), 0, 0, 0},
};

static int api_process_control_decode_signal(
	const cJSON *body, struct op_process *ret, struct error *e)
{
	struct signal_body fields = {0};
	if (json_decode(body, signal_fields, ARRAY_LEN(signal_fields), "", &fields, e) < 0)
		return -1;
	ret->signal = execution_signal_of(fields.signal);
	ret->tree = fields.tree;
	if (ret->signal)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "signal", "there is no signal '%.16s'", fields.signal);
}

static void handle_signal(struct http_request *req)
{
	struct error e;
	struct op_process request = {.process = process_named(req), .act = OP_PROCESS_SIGNAL};
	struct answer *a = process_answer(req, &process_done_form);
	const cJSON *body = answer_typed_json(a, &e);
	api_process_control_process_tell(
		a, &request, body ? api_process_control_decode_signal(body, &request, &e) : -1, &e);
}

/* ---- terminals ---- */

struct size_body {
	int64_t rows, columns;
};

static const struct json_field size_fields[] = {
	{"rows", FIELD_INTEGER, offsetof(struct size_body, rows), FIELD_REQUIRED, 1, 1000},
	{"columns", FIELD_INTEGER, offsetof(struct size_body, columns), FIELD_REQUIRED, 1, 1000},
};

static void handle_resize(struct http_request *req)
{
	struct error e;
	struct size_body size = {0};
	struct answer *a = process_answer(req, &process_done_form);
	const cJSON *body = answer_typed_json(a, &e);
	int r = body ? json_decode(body, size_fields, ARRAY_LEN(size_fields), "", &size, &e) : -1;
	struct op_process request = {.process = process_named(req),
		.act = OP_PROCESS_RESIZE,
		.rows = (unsigned)size.rows,
		.columns = (unsigned)size.columns};
	api_process_control_process_tell(a, &request, r, &e);
}

static const struct http_route process_control_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/processes/{process}/signal", handle_signal, BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/processes/{process}/resize", handle_resize, BODY_LIMIT},
};

const struct route_table processes_control_table = ROUTE_TABLE(process_control_routes);
