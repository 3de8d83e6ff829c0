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
#include <stdlib.h>
#include <string.h>

#include "api/contexts.h"
#include "api/stream.h"
#include "handler/runs.h"
#include "http/sse.h"

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
	{"code", JSON_STRING, offsetof(struct run_body, code), JSON_REQUIRED, 0, CODE_TEXT_MAX},
	{"env", JSON_STRING_MAP, offsetof(struct run_body, env), 0, 0, CODE_VARIABLES},
	{"timeout", JSON_DURATION, offsetof(struct run_body, timeout_ms), 0, 1, TIMEOUT_MAX},
};

/* ---- events ---- */

static const struct run_form line_form, sse_form;

static struct json_writer event_begin(
	const struct run_form *form, const char *type, struct buf *out)
{
	struct json_writer w = {.out = out};
	if (form == &sse_form)
		sse_begin(out, type, NULL);
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void event_end(const struct run_form *form, struct json_writer *w)
{
	json_end_object(w);
	if (form == &sse_form)
		sse_end(w->out);
	else
		buf_append_char(w->out, '\n');
}

static void put_output(const struct run_form *form, const struct code_event *event, struct buf *out)
{
	bool is_stderr = event->type == CODE_EVENT_STDERR;
	struct json_writer w = event_begin(form, is_stderr ? "stderr" : "stdout", out);
	json_key(&w, "data");
	json_string_n(&w, event->fields[0].data, event->fields[0].len);
	event_end(form, &w);
}

static bool is_json(const struct code_field *mime)
{
	static const char json[] = "application/json", suffix[] = "+json";
	size_t len = sizeof suffix - 1;
	return (mime->len == sizeof json - 1 && memcmp(mime->data, json, mime->len) == 0) ||
	       (mime->len > len && memcmp(mime->data + mime->len - len, suffix, len) == 0);
}

static void put_result(const struct run_form *form, const struct code_event *event, struct buf *out)
{
	struct json_writer w = event_begin(form, "result", out);
	json_put_bool(&w, "main", event->type == CODE_EVENT_RESULT);
	json_key(&w, "formats");
	json_begin_object(&w);
	for (size_t i = 0; i + 1 < event->field_count; i += 2) {
		const struct code_field *mime = &event->fields[i], *data = &event->fields[i + 1];
		bool as_json = is_json(mime);
		if (as_json && !json_is_line(data->data, data->len))
			continue;
		json_key_n(&w, mime->data, mime->len);
		if (as_json)
			json_raw_n(&w, data->data, data->len);
		else
			json_string_n(&w, data->data, data->len);
	}
	json_end_object(&w);
	event_end(form, &w);
}

static void put_error(const struct run_form *form, const struct code_event *event, struct buf *out)
{
	static const char *const names[] = {"name", "value", "traceback"};
	struct json_writer w = event_begin(form, "error", out);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_key(&w, names[i]);
		json_string_n(&w, event->fields[i].data, event->fields[i].len);
	}
	event_end(form, &w);
}

static void put_event(const struct run_form *form, const struct code_event *event, struct buf *out)
{
	struct json_writer w;
	switch (event->type) {
	case CODE_EVENT_STDOUT:
	case CODE_EVENT_STDERR:
		put_output(form, event, out);
		return;
	case CODE_EVENT_RESULT:
	case CODE_EVENT_DISPLAY:
		put_result(form, event, out);
		return;
	case CODE_EVENT_ERROR:
		put_error(form, event, out);
		return;
	case CODE_EVENT_COUNT:
		w = event_begin(form, "start", out);
		json_put_int(&w, "count", event->count);
		break;
	default:
		w = event_begin(form, "end", out);
		break;
	}
	event_end(form, &w);
}

static void begin_lines(struct http_request *req, const struct http_generator *generator)
{
	http_add_header(req, "Cache-Control", "no-store");
	http_stream_begin(req, 200, stream_content_type(STREAM_NDJSON), generator);
	http_stream_keepalive(req, KEEPALIVE, sizeof KEEPALIVE - 1, KEEPALIVE_MS);
}

static void begin_sse(struct http_request *req, const struct http_generator *generator)
{
	http_add_header(req, "Cache-Control", "no-store");
	http_stream_begin(req, 200, stream_content_type(STREAM_SSE), generator);
	sse_keep_alive(req);
}

static const struct run_form line_form = {begin_lines, put_event},
			     sse_form = {begin_sse, put_event};

/* ---- the request ---- */

static int start(
	struct http_request *req, struct code_context *c, const cJSON *body, struct error *e)
{
	struct run_body fields = {0};
	autoscratch memory = {0};
	struct code_run_spec spec = {0};
	bool sse = stream_format_of(http_header(req, "accept")) == STREAM_SSE;
	if (json_decode(body, run_fields, ARRAY_LEN(run_fields), "", &fields, e) < 0 ||
		json_environment(fields.env, "env", &memory, &spec.env, e) < 0)
		return -1;
	spec.code = fields.code;
	spec.code_len = strlen(fields.code);
	spec.timeout_ms = fields.timeout_ms;
	return handler_run_code(req, c, &spec, sse ? &sse_form : &line_form, e);
}

static void handle_execute(struct http_request *req)
{
	struct error e;
	struct code_context *c = api_context(req);
	cJSON *body = c ? api_body(req) : NULL;
	if (!body)
		return;
	if (start(req, c, body, &e) < 0)
		http_respond_error(req, &e);
	cJSON_Delete(body);
}

static const struct http_route context_run_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/contexts/{context}/execute", handle_execute, BODY_MAX},
};

const struct route_table context_run_table = ROUTE_TABLE(context_run_routes);
