/*
 * POST /v1/sandboxes/{id}/contexts/{context}/execute: code, and what comes of it as events, one
 * JSON object each. As NDJSON a line each; as SSE "event: TYPE" and "data: OBJECT".
 *
 *     {"type":"start","count":1}
 *     {"type":"stdout"|"stderr","data":"…"}
 *     {"type":"result","main":true,"formats":{"text/plain":"2",…}}
 *         main: it is the value of the last expression
 *     {"type":"error","name":"…","value":"…","traceback":"…"}
 *     {"type":"end"}
 *
 * Formats that are JSON are given as JSON, binary ones in base64. A client that goes away
 * interrupts its run.
 */
#include <string.h>

#include "answer/json_body.h"
#include "api/routes.h"
#include "api/stream.h"
#include "http/sse.h"
#include "op/code.h"

#define BODY_MAX     (8u << 20) /* the code, with everything escaped */
#define KEEPALIVE_MS 15000
#define KEEPALIVE    "{\"type\":\"keepalive\"}\n"
#define TIMEOUT_MAX  (24ll * 3600 * 1000)

struct run_body {
	const char *code;
	const cJSON *env;
	int64_t timeout_ms;
};

static const struct json_field run_fields[] = {
	{"code", FIELD_TEXT, offsetof(struct run_body, code), FIELD_REQUIRED, 0, CODE_TEXT_MAX},
	{"env", FIELD_STRING_MAP, offsetof(struct run_body, env), 0, 0, CODE_VARIABLES},
	{"timeout", FIELD_DURATION, offsetof(struct run_body, timeout_ms), 0, 1, TIMEOUT_MAX},
};

/* ---- events ---- */

/* The `own` of the form. */
struct run_stream {
	bool sse;
};

static bool run_is_sse(const struct answer *a)
{
	return ((const struct run_stream *)a->own)->sse;
}

static struct json_writer run_event_begin(struct answer *a, const char *type)
{
	struct json_writer w = {.out = &a->out};
	if (run_is_sse(a))
		sse_begin(&a->out, type, NULL);
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void run_event_end(struct answer *a, struct json_writer *w)
{
	json_end_object(w);
	if (run_is_sse(a))
		sse_end(&a->out);
	else
		buf_append_char(&a->out, '\n');
}

static void run_put_output(struct answer *a, const struct code_event *event)
{
	bool is_stderr = event->type == CODE_EVENT_STDERR;
	struct json_writer w = run_event_begin(a, is_stderr ? "stderr" : "stdout");
	json_key(&w, "data");
	json_string_n(&w, event->fields[0].data, event->fields[0].len);
	run_event_end(a, &w);
}

static bool format_is_json(const struct code_field *mime)
{
	static const char json[] = "application/json", suffix[] = "+json";
	size_t len = sizeof suffix - 1;
	return (mime->len == sizeof json - 1 && memcmp(mime->data, json, mime->len) == 0) ||
	       (mime->len > len && memcmp(mime->data + mime->len - len, suffix, len) == 0);
}

static void run_put_result(struct answer *a, const struct code_event *event)
{
	struct json_writer w = run_event_begin(a, "result");
	json_put_bool(&w, "main", event->type == CODE_EVENT_RESULT);
	json_key(&w, "formats");
	json_begin_object(&w);
	for (size_t i = 0; i + 1 < event->field_count; i += 2) {
		const struct code_field *mime = &event->fields[i], *data = &event->fields[i + 1];
		bool as_json = format_is_json(mime);
		if (as_json && !json_is_line(data->data, data->len))
			continue;
		json_key_n(&w, mime->data, mime->len);
		if (as_json)
			json_raw_n(&w, data->data, data->len);
		else
			json_string_n(&w, data->data, data->len);
	}
	json_end_object(&w);
	run_event_end(a, &w);
}

static void run_put_error(struct answer *a, const struct code_event *event)
{
	static const char *const names[] = {"name", "value", "traceback"};
	struct json_writer w = run_event_begin(a, "error");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_key(&w, names[i]);
		json_string_n(&w, event->fields[i].data, event->fields[i].len);
	}
	run_event_end(a, &w);
}

static void run_put_event(struct answer *a, const struct code_event *event)
{
	struct json_writer w;
	switch (event->type) {
	case CODE_EVENT_STDOUT:
	case CODE_EVENT_STDERR:
		run_put_output(a, event);
		return;
	case CODE_EVENT_RESULT:
	case CODE_EVENT_DISPLAY:
		run_put_result(a, event);
		return;
	case CODE_EVENT_ERROR:
		run_put_error(a, event);
		return;
	case CODE_EVENT_COUNT:
		w = run_event_begin(a, "start");
		json_put_int(&w, "count", event->count);
		break;
	default:
		w = run_event_begin(a, "end");
		break;
	}
	run_event_end(a, &w);
}

static int context_run_put(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_CODE)
		run_put_event(a, event->code);
	return 0;
}

static void run_head(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
}

/* ---- the request ---- */

static struct answer *run_answer(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_LIVE,
		.own_size = sizeof(struct run_stream),
		.put = context_run_put,
		.head = run_head};
	bool sse = stream_format_of(http_header(req, "accept")) == STREAM_SSE;
	struct answer *a = api_answer(req, &form);
	((struct run_stream *)a->own)->sse = sse;
	a->type = stream_content_type(sse ? STREAM_SSE : STREAM_NDJSON);
	if (sse)
		answer_keep_alive(a, SSE_KEEPALIVE, sizeof SSE_KEEPALIVE - 1, SSE_KEEPALIVE_MS);
	else
		answer_keep_alive(a, KEEPALIVE, sizeof KEEPALIVE - 1, KEEPALIVE_MS);
	return a;
}

static int context_run_decode(
	const cJSON *body, struct scratch *memory, struct code_run_spec *ret, struct error *e)
{
	struct run_body fields = {0};
	if (json_decode(body, run_fields, ARRAY_LEN(run_fields), "", &fields, e) < 0 ||
		json_environment(fields.env, "env", memory, &ret->env, e) < 0)
		return -1;
	ret->code = fields.code;
	ret->code_len = strlen(fields.code);
	ret->timeout_ms = fields.timeout_ms;
	return 0;
}

static void handle_context_execute(struct http_request *req)
{
	struct error e;
	struct op_code_run run = {.context = {http_param(req, "context"), .or_language = true}};
	struct answer *a = run_answer(req);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || context_run_decode(body, &a->call.memory, &run.spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_code_run(&a->call, &run);
	answer_run(a);
}

static const struct http_route context_run_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/contexts/{context}/execute", handle_context_execute,
		BODY_MAX},
};

const struct route_table context_run_table = ROUTE_TABLE(context_run_routes);
