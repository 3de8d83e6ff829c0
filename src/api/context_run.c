/*
 * POST /v1/sandboxes/{id}/contexts/{context}/execute: code, and what comes of it as events, one
 * JSON object each. As NDJSON a line each; as SSE "event: TYPE" and "data: OBJECT".
 *
 *     {"type":"start","count":1}
 *     {"type":"stdout"|"stderr","data":"…"}
 *     {"type":"result","main":true,"formats":{"text/plain":"2",…}}      main: of the last
 * expression
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
#include "http/sse.h"
#include "http/utf8.h"

#define BODY_MAX     (8u << 20) /* the code, with everything escaped */
#define CHUNK        (64u * 1024)
#define KEEPALIVE_MS 15000
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

struct run_call {
	struct http_request *req;
	struct code_run *run;
	enum stream_format format;
	struct utf8_rest rests[2];
	bool hungry;
};

/* ---- events ---- */

static struct json_writer event_begin(
	const struct run_call *call, const char *type, struct buf *out)
{
	struct json_writer w = {.out = out};
	if (call->format == STREAM_SSE)
		sse_begin(out, type, NULL);
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void event_end(const struct run_call *call, struct json_writer *w)
{
	json_end_object(w);
	if (call->format == STREAM_SSE)
		sse_end(w->out);
	else
		buf_append_char(w->out, '\n');
}

static void put_output(struct run_call *call, const struct code_event *event, struct buf *out)
{
	unsigned index = event->type == CODE_EVENT_STDERR;
	autobuf text = {0};
	utf8_join(&call->rests[index], event->fields[0].data, event->fields[0].len, &text);
	if (text.len == 0)
		return;
	struct json_writer w = event_begin(call, index ? "stderr" : "stdout", out);
	json_key(&w, "data");
	json_string_n(&w, text.data, text.len);
	event_end(call, &w);
}

static bool is_json(const struct code_field *mime)
{
	static const char json[] = "application/json", suffix[] = "+json";
	size_t len = sizeof suffix - 1;
	return (mime->len == sizeof json - 1 && memcmp(mime->data, json, mime->len) == 0) ||
	       (mime->len > len && memcmp(mime->data + mime->len - len, suffix, len) == 0);
}

static void put_result(const struct run_call *call, const struct code_event *event, struct buf *out)
{
	struct json_writer w = event_begin(call, "result", out);
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
	event_end(call, &w);
}

static void put_error(const struct run_call *call, const struct code_event *event, struct buf *out)
{
	static const char *const names[] = {"name", "value", "traceback"};
	struct json_writer w = event_begin(call, "error", out);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		json_key(&w, names[i]);
		json_string_n(&w, event->fields[i].data, event->fields[i].len);
	}
	event_end(call, &w);
}

static void put_event(struct run_call *call, const struct code_event *event, struct buf *out)
{
	struct json_writer w;
	switch (event->type) {
	case CODE_EVENT_STDOUT:
	case CODE_EVENT_STDERR:
		put_output(call, event, out);
		return;
	case CODE_EVENT_RESULT:
	case CODE_EVENT_DISPLAY:
		put_result(call, event, out);
		return;
	case CODE_EVENT_ERROR:
		put_error(call, event, out);
		return;
	case CODE_EVENT_COUNT:
		w = event_begin(call, "start", out);
		json_put_int(&w, "count", event->count);
		break;
	default:
		w = event_begin(call, "end", out);
		break;
	}
	event_end(call, &w);
}

/* ---- the stream ---- */

static void call_free(struct run_call *call)
{
	code_run_close(call->run);
	free(call);
}

static void pump(struct run_call *call)
{
	struct code_event event = {0};
	struct http_request *req = call->req;
	struct buf out = {0};
	if (!call->hungry)
		return;
	while (out.len < CHUNK && event.type < CODE_EVENT_END && code_run_next(call->run, &event))
		if (event.type != CODE_EVENT_LOST)
			put_event(call, &event, &out);
	if (out.len == 0 && event.type < CODE_EVENT_END)
		return;
	call->hungry = false;
	if (event.type >= CODE_EVENT_END)
		call_free(call); /* first: a write may find that the client has gone */
	if (out.len > 0)
		http_stream_write(req, &out);
	if (event.type == CODE_EVENT_LOST)
		http_stream_abort(req);
	else if (event.type == CODE_EVENT_END)
		http_stream_end(req);
}

static void run_changed(void *arg)
{
	pump(arg);
}

static void stream_proceed(void *arg)
{
	struct run_call *call = arg;
	call->hungry = true;
	pump(call);
}

static void stream_stopped(void *arg)
{
	call_free(arg);
}

static int start(struct run_call *call, struct code_context *c, const cJSON *body, struct error *e)
{
	struct run_body fields = {0};
	autoscratch memory = {0};
	struct code_run_spec spec = {.changed = run_changed, .arg = call};
	if (json_decode(body, run_fields, ARRAY_LEN(run_fields), "", &fields, e) < 0 ||
		json_environment(fields.env, "env", &memory, &spec.env, e) < 0)
		return -1;
	spec.code = fields.code;
	spec.code_len = strlen(fields.code);
	spec.timeout_ms = fields.timeout_ms;
	return code_run_start(c, &spec, &call->run, e);
}

static void begin_stream(struct run_call *call)
{
	const struct http_generator generator = {stream_proceed, stream_stopped, call};
	http_add_header(call->req, "Cache-Control", "no-store");
	http_stream_begin(call->req, 200, stream_content_type(call->format), &generator);
	if (call->format == STREAM_SSE)
		sse_keep_alive(call->req);
	else
		http_stream_keepalive(call->req, "{\"type\":\"keepalive\"}\n", KEEPALIVE_MS);
}

static void handle_execute(struct http_request *req)
{
	struct error e;
	struct code_context *c = api_context(req);
	cJSON *body = c ? api_body(req) : NULL;
	if (!body)
		return;
	struct run_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->format = stream_format_of(http_header(req, "accept"));
	if (start(call, c, body, &e) < 0) {
		free(call);
		http_respond_error(req, &e);
	} else {
		begin_stream(call);
	}
	cJSON_Delete(body);
}

static const struct http_route context_run_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/contexts/{context}/execute", handle_execute, BODY_MAX},
};

const struct api_table context_run_table = API_TABLE(context_run_routes);
