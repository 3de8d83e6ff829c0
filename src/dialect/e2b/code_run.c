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
#include <string.h>

#include "answer/json_body.h"
#include "base/clock.h"
#include "dialect/e2b/code.h"

#define BODY_MAX     (8u << 20)
#define KEEPALIVE_MS 5000
#define KEEPALIVE    "{\"type\":\"keepalive\"}\n"

/* ---- events ---- */

static void put_field(struct json_writer *w, const char *key, const struct code_field *value)
{
	json_key(w, key);
	json_string_n(w, value->data, value->len);
}

static void e2b_code_run_put_output(const struct code_event *event, struct json_writer *w)
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

static void e2b_code_run_put_error(const struct code_event *event, struct json_writer *w)
{
	json_put_string(w, "type", "error");
	put_field(w, "name", &event->fields[0]);
	put_field(w, "value", &event->fields[1]);
	put_field(w, "traceback", &event->fields[2]);
}

static void e2b_code_run_put_line(const struct code_event *event, struct buf *out)
{
	autobuf line = {0};
	struct json_writer w = {.out = &line};
	json_begin_object(&w);
	if (event->type == CODE_EVENT_COUNT) {
		json_put_string(&w, "type", "number_of_executions");
		json_put_int(&w, "execution_count", event->count);
	} else if (event->type == CODE_EVENT_STDOUT || event->type == CODE_EVENT_STDERR) {
		e2b_code_run_put_output(event, &w);
	} else if (event->type == CODE_EVENT_RESULT || event->type == CODE_EVENT_DISPLAY) {
		put_result(event, &w);
	} else if (event->type == CODE_EVENT_ERROR) {
		e2b_code_run_put_error(event, &w);
	} else {
		json_put_string(&w, "type", "end_of_execution");
	}
	json_end_object(&w);
	json_append_ascii(out, line.data, line.len);
	buf_append_char(out, '\n');
	out->failed |= line.failed;
}

/* ---- the request ---- */

struct run_message {
	const char *code, *context_id, *language;
	const cJSON *env_vars;
};

static const struct json_field run_fields[] = {
	{"code", FIELD_TEXT, offsetof(struct run_message, code), FIELD_REQUIRED, 0, CODE_TEXT_MAX},
	{"context_id", FIELD_TEXT, offsetof(struct run_message, context_id), 0, 0, 128},
	{"language", FIELD_TEXT, offsetof(struct run_message, language), 0, 0, 64},
	{"env_vars", FIELD_STRING_MAP, offsetof(struct run_message, env_vars), 0, 0,
		CODE_VARIABLES - 8},
};

/* What `own` is: the context that was asked for, "" for that of a language. */
struct run_answer {
	char context[65];
};

static int run_find_context(
	const struct run_message *m, struct op_context_ref *ret, struct error *e)
{
	enum code_language language;
	if (m->context_id && m->language)
		return error_set(e, ERROR_INVALID_REQUEST,
			"Only one of context_id or language can be provided");
	if (m->context_id) {
		*ret = (struct op_context_ref){m->context_id, false};
		return 0;
	}
	if (code_language_of(m->language ? m->language : "python", &language, e) < 0)
		return -1;
	*ret = (struct op_context_ref){
		code_language_name(language), .or_language = true, .user = E2B_CODE_USER};
	return 0;
}

/* What E2B has in every environment, then what the request wants there. */
static int run_decode_env(const char *sandbox, const cJSON *vars, struct scratch *memory,
	const char *const **ret, struct error *e)
{
	const char *const *asked = NULL;
	size_t n = 0;
	if (json_environment(vars, "env_vars", memory, &asked, e) < 0)
		return -1;
	while (asked && asked[n])
		n++;
	const char **env = scratch_alloc(memory, (n + 3) * sizeof *env);
	char *id = scratch_alloc(memory, 64);
	snprintf(id, 64, "E2B_SANDBOX_ID=%s", sandbox);
	env[0] = "E2B_SANDBOX=true";
	env[1] = id;
	if (n > 0)
		memcpy(env + 2, asked, n * sizeof *env);
	*ret = env;
	return 0;
}

static int e2b_code_run_decode(
	const cJSON *message, struct answer *a, struct op_code_run *ret, struct error *e)
{
	struct run_message m = {0};
	struct run_answer *own = a->own;
	if (json_decode_known(message, run_fields, ARRAY_LEN(run_fields), "", &m, e) < 0 ||
		run_decode_env(a->call.sandbox, m.env_vars, &a->call.memory, &ret->spec.env, e) <
			0 ||
		run_find_context(&m, &ret->context, e) < 0)
		return -1;
	if (m.context_id)
		snprintf(own->context, sizeof own->context, "%s", m.context_id);
	ret->template_variable = "E2B_TEMPLATE_ID";
	ret->spec.code = m.code;
	ret->spec.code_len = strlen(m.code);
	return 0;
}

static int e2b_code_run_put(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_CODE)
		e2b_code_run_put_line(event->code, &a->out);
	return 0;
}

/* The SDK shows what a run says, but of other statuses than 404 and 502 not even the text. */
static void run_put_failure(struct answer *a, const struct error *e)
{
	struct code_event event = {.type = CODE_EVENT_ERROR, .field_count = 3};
	struct code_event end = {.type = CODE_EVENT_END};
	event.fields[0] = (struct code_field){"LanguageNotAvailable", 20};
	event.fields[1] = event.fields[2] = (struct code_field){e->message, strlen(e->message)};
	e2b_code_run_put_line(&event, &a->out);
	e2b_code_run_put_line(&end, &a->out);
}

static enum answer_failure run_fail(struct answer *a, struct error *e, const struct op_event *event)
{
	const struct run_answer *own = a->own;
	if (a->streaming)
		return ANSWER_ERROR;
	if (strcmp(e->field, "language") == 0) {
		run_put_failure(a, e);
		return ANSWER_PUT;
	}
	if (event && event->reason == OP_NO_CONTEXT)
		error_set(e, ERROR_NOT_FOUND, "Context %s not found", own->context);
	return ANSWER_ERROR;
}

static void e2b_code_run_handle_execute(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_LIVE,
		.own_size = sizeof(struct run_answer),
		.put = e2b_code_run_put,
		.fail = run_fail};
	struct error e = {0};
	struct op_code_run run = {0};
	struct answer *a = envd_answer(req, &form);
	const cJSON *message = answer_json(a, &e);
	answer_keep_alive(a, KEEPALIVE, sizeof KEEPALIVE - 1, KEEPALIVE_MS);
	if (!message || e2b_code_run_decode(message, a, &run, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_code_run(&a->call, &run);
	answer_run(a);
}

static const struct http_route code_run_routes[] = {
	{HTTP_POST, "/execute", e2b_code_run_handle_execute, BODY_MAX},
};

const struct route_table e2b_code_run_table = ROUTE_TABLE(code_run_routes);
