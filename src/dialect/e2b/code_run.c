/*
 * POST /execute {"code","context_id" or "language","env_vars"}: a run, as lines of JSON.
 *
 *     {"type":"number_of_executions","execution_count":1}
 *     {"type":"stdout"|"stderr","text":"…","timestamp":"…"}
 *     {"type":"result","is_main_result":true,"text":"…","png":"…",…}
 *     {"type":"error","name":"…","value":"…","traceback":"…"}
 *     {"type":"keepalive"}
 *     {"type":"end_of_execution"}
 *
 * Nothing but ASCII, because the SDK decodes each piece that arrives by itself, and no empty line,
 * because it takes one for JSON. A client that goes away interrupts the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "dialect/e2b/code.h"
#include "handler/runs.h"

#define BODY_MAX     (8u << 20)
#define KEEPALIVE_MS 5000
#define KEEPALIVE    "{\"type\":\"keepalive\"}\n"

/* ---- events ---- */

static void put_field(struct json_writer *w, const char *key, const struct code_field *value)
{
	json_key(w, key);
	json_string_n(w, value->data, value->len);
}

static void put_output(const struct code_event *event, struct json_writer *w)
{
	json_put_string(w, "type", event->type == CODE_EVENT_STDERR ? "stderr" : "stdout");
	put_field(w, "text", &event->fields[0]);
	json_put_time(w, "timestamp", clock_wall_ms());
}

/* What E2B has fields for; other types are in `extra`, by their names. */
static const struct {
	const char *mime, *field;
	bool is_json;
} forms[] = {
	{"text/plain", "text", false},
	{"text/html", "html", false},
	{"text/markdown", "markdown", false},
	{"image/svg+xml", "svg", false},
	{"image/png", "png", false},
	{"image/jpeg", "jpeg", false},
	{"application/pdf", "pdf", false},
	{"text/latex", "latex", false},
	{"application/json", "json", true},
	{"application/javascript", "javascript", false},
	{"application/vnd.bunker.data+json", "data", true},
	{"application/vnd.bunker.chart+json", "chart", true},
};

static bool is_called(const struct code_field *f, const char *name)
{
	return f->len == strlen(name) && memcmp(f->data, name, f->len) == 0;
}

static size_t form_of(const struct code_field *mime)
{
	size_t i = 0;
	while (i < ARRAY_LEN(forms) && !is_called(mime, forms[i].mime))
		i++;
	return i;
}

/* A string's text is without the quotes of its repr. */
static struct code_field without_quotes(struct code_field f)
{
	bool quoted = f.len >= 2 && (f.data[0] == '\'' || f.data[0] == '"') &&
		      f.data[f.len - 1] == f.data[0];
	return quoted ? (struct code_field){f.data + 1, f.len - 2} : f;
}

static void put_form(struct json_writer *w, size_t form, struct code_field data)
{
	if (forms[form].is_json && !json_is_line(data.data, data.len))
		return;
	if (form == 0)
		data = without_quotes(data);
	json_key(w, forms[form].field);
	if (forms[form].is_json)
		json_raw_n(w, data.data, data.len);
	else
		json_string_n(w, data.data, data.len);
}

static void put_extra(struct json_writer *w, const struct code_event *event)
{
	bool open = false;
	for (size_t i = 0; i + 1 < event->field_count; i += 2) {
		if (form_of(&event->fields[i]) < ARRAY_LEN(forms))
			continue;
		if (!open) {
			json_key(w, "extra");
			json_begin_object(w);
		}
		open = true;
		json_key_n(w, event->fields[i].data, event->fields[i].len);
		json_string_n(w, event->fields[i + 1].data, event->fields[i + 1].len);
	}
	if (open)
		json_end_object(w);
}

static void put_result(const struct code_event *event, struct json_writer *w)
{
	bool told[ARRAY_LEN(forms)] = {false};
	json_put_string(w, "type", "result");
	json_put_bool(w, "is_main_result", event->type == CODE_EVENT_RESULT);
	for (size_t i = 0; i + 1 < event->field_count; i += 2) {
		size_t form = form_of(&event->fields[i]);
		if (form == ARRAY_LEN(forms) || told[form])
			continue;
		told[form] = true;
		put_form(w, form, event->fields[i + 1]);
	}
	put_extra(w, event);
}

static void put_error(const struct code_event *event, struct json_writer *w)
{
	json_put_string(w, "type", "error");
	put_field(w, "name", &event->fields[0]);
	put_field(w, "value", &event->fields[1]);
	put_field(w, "traceback", &event->fields[2]);
}

static void put_line(const struct run_form *form, const struct code_event *event, struct buf *out)
{
	autobuf line = {0};
	struct json_writer w = {.out = &line};
	(void)form;
	json_begin_object(&w);
	if (event->type == CODE_EVENT_COUNT) {
		json_put_string(&w, "type", "number_of_executions");
		json_put_int(&w, "execution_count", event->count);
	} else if (event->type == CODE_EVENT_STDOUT || event->type == CODE_EVENT_STDERR) {
		put_output(event, &w);
	} else if (event->type == CODE_EVENT_RESULT || event->type == CODE_EVENT_DISPLAY) {
		put_result(event, &w);
	} else if (event->type == CODE_EVENT_ERROR) {
		put_error(event, &w);
	} else {
		json_put_string(&w, "type", "end_of_execution");
	}
	json_end_object(&w);
	json_append_ascii(out, line.data, line.len);
	buf_append_char(out, '\n');
	out->failed |= line.failed;
}

static void begin_stream(struct http_request *req, const struct http_generator *generator)
{
	http_stream_begin(req, 200, "application/json", generator);
	http_stream_keepalive(req, KEEPALIVE, sizeof KEEPALIVE - 1, KEEPALIVE_MS);
}

static const struct run_form line_form = {begin_stream, put_line};

/* ---- the request ---- */

struct run_message {
	const char *code, *context_id, *language;
	const cJSON *env_vars;
};

static const struct json_field run_fields[] = {
	{"code", JSON_STRING, offsetof(struct run_message, code), JSON_REQUIRED, 0, CODE_TEXT_MAX},
	{"context_id", JSON_STRING, offsetof(struct run_message, context_id), 0, 0, 128},
	{"language", JSON_STRING, offsetof(struct run_message, language), 0, 0, 64},
	{"env_vars", JSON_STRING_MAP, offsetof(struct run_message, env_vars), 0, 0,
		CODE_VARIABLES - 8},
};

static struct code_context *find_context(
	struct http_request *req, const struct run_message *m, struct error *e)
{
	struct sandbox *s = envd_sandbox(req);
	enum code_language language;
	if (m->context_id && m->language) {
		error_set(e, ERROR_INVALID_REQUEST,
			"Only one of context_id or language can be provided");
		return NULL;
	}
	if (m->context_id) {
		struct code_context *c = code_context_find(s, m->context_id);
		if (!c)
			error_set(e, ERROR_NOT_FOUND, "Context %.64s not found", m->context_id);
		return c;
	}
	if (code_language_of(m->language ? m->language : "python", &language, e) < 0)
		return NULL;
	return code_context_default(s, language, e);
}

/* What E2B has in every environment, then what the request wants there. */
static int decode_env(const struct sandbox *s, const cJSON *vars, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	struct sandbox_view view;
	const char *const *asked = NULL;
	size_t n = 0;
	if (json_environment(vars, "env_vars", memory, &asked, e) < 0)
		return -1;
	while (asked && asked[n])
		n++;
	sandbox_view(s, &view);
	const char **env = scratch_alloc(memory, (n + 4) * sizeof *env);
	char *texts = scratch_alloc(memory, 2 * 256);
	snprintf(texts, 256, "E2B_SANDBOX_ID=%s", view.id);
	snprintf(texts + 256, 256, "E2B_TEMPLATE_ID=%.200s", view.template_name);
	env[0] = "E2B_SANDBOX=true";
	env[1] = texts;
	env[2] = texts + 256;
	if (n > 0)
		memcpy(env + 3, asked, n * sizeof *env);
	*ret = env;
	return 0;
}

static int start(struct http_request *req, const cJSON *message, struct error *e)
{
	struct run_message m = {0};
	autoscratch memory = {0};
	struct code_run_spec spec = {0};
	if (json_decode_known(message, run_fields, ARRAY_LEN(run_fields), "", &m, e) < 0 ||
		decode_env(envd_sandbox(req), m.env_vars, &memory, &spec.env, e) < 0)
		return -1;
	struct code_context *c = find_context(req, &m, e);
	if (!c)
		return -1;
	spec.code = m.code;
	spec.code_len = strlen(m.code);
	return handler_run_code(req, c, &spec, &line_form, e);
}

/* The SDK shows what a run says, but of other statuses than 404 and 502 not even the text. */
static void respond_as_run(struct http_request *req, const struct error *e)
{
	struct code_event event = {.type = CODE_EVENT_ERROR, .field_count = 3};
	struct code_event end = {.type = CODE_EVENT_END};
	struct buf body = {0};
	event.fields[0] = (struct code_field){"LanguageNotAvailable", 20};
	event.fields[1] = event.fields[2] = (struct code_field){e->message, strlen(e->message)};
	put_line(&line_form, &event, &body);
	put_line(&line_form, &end, &body);
	http_respond(req, 200, "application/json", &body);
}

static void handle_execute(struct http_request *req)
{
	struct error e = {0};
	cJSON *message = e2b_body(req);
	if (!message)
		return;
	if (start(req, message, &e) < 0) {
		if (strcmp(e.field, "language") == 0)
			respond_as_run(req, &e);
		else
			http_respond_error(req, &e);
	}
	cJSON_Delete(message);
}

static const struct http_route code_run_routes[] = {
	{HTTP_POST, "/execute", handle_execute, BODY_MAX},
};

const struct route_table e2b_code_run_table = ROUTE_TABLE(code_run_routes);
