/*
 * Builds: asked for, started with their steps (build_spec.c), watched until they end. Files for
 * COPY come in between (build_files.c).
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "answer/json_body.h"
#include "base/cleanup.h"
#include "dialect/e2b/aliases.h"
#include "dialect/e2b/templates.h"
#include "op/build.h"

#define TAGS_MAX 100
#define LOG_PAGE 100

/* ---- asking for a build ---- */

struct build_body {
	const char *name, *alias;
	const cJSON *tags;
	int64_t cpu_count, memory_mb;
};

static const struct json_field build_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct build_body, name), FIELD_NOT_EMPTY, 0,
		TEMPLATE_REF_MAX},
	{"alias", FIELD_TEXT, offsetof(struct build_body, alias), FIELD_NOT_EMPTY, 0,
		TEMPLATE_REF_MAX},
	{"tags", FIELD_ARRAY, offsetof(struct build_body, tags), 0, 0, TAGS_MAX},
	{"cpuCount", FIELD_INTEGER, offsetof(struct build_body, cpu_count), 0, 0, 1024},
	{"memoryMB", FIELD_INTEGER, offsetof(struct build_body, memory_mb), 0, 0, 1 << 26},
};

/* Up to TAGS_MAX tags, as the core calls them. */
struct tag_list {
	const char *tags[TAGS_MAX + 1];
	size_t count;
};

static int tag_list_add(struct tag_list *list, const char *tag, struct error *e)
{
	if (template_check_tag(tag, "tags", e) < 0)
		return -1;
	if (list->count < TAGS_MAX)
		list->tags[list->count++] = e2b_tag_in(tag);
	return 0;
}

/* The tags that the build gets: those of the list, that of the name, or the one there always is. */
static int tag_list_settle(
	const cJSON *given, const char *of_name, struct tag_list *list, struct error *e)
{
	const cJSON *tag;
	cJSON_ArrayForEach(tag, given)
	{
		if (!cJSON_IsString(tag))
			return error_set_field(
				e, ERROR_INVALID_FIELD, "tags", "\"tags\" must hold strings only");
		if (tag_list_add(list, tag->valuestring, e) < 0)
			return -1;
	}
	if (of_name[0] && tag_list_add(list, of_name, e) < 0)
		return -1;
	return list->count ? 0 : tag_list_add(list, E2B_DEFAULT_TAG, e);
}

static void tag_list_encode(const struct tag_list *list, struct buf *out)
{
	struct json_writer w = {.out = out};
	json_begin_array(&w);
	for (size_t i = 0; i < list->count; i++)
		json_string(&w, e2b_tag_out(list->tags[i]));
	json_end_array(&w);
}

static int build_decode(
	const cJSON *message, struct answer *a, struct build_new *ret, struct error *e)
{
	struct build_body body = {0};
	struct scratch *memory = &a->call.memory;
	char *name = scratch_alloc(memory, TEMPLATE_NAME_MAX + 1);
	char *tag = scratch_alloc(memory, TEMPLATE_TAG_MAX + 1);
	struct tag_list *list = scratch_alloc(memory, sizeof *list);
	if (json_decode_known(message, build_fields, ARRAY_LEN(build_fields), "", &body, e) < 0)
		return -1;
	const char *reference = body.name ? body.name : body.alias;
	if (!reference)
		return error_set_field(e, ERROR_MISSING_FIELD, "name", "\"name\" is required");
	if (template_split(reference, name, tag, e) < 0 ||
		tag_list_settle(body.tags, tag, list, e) < 0)
		return -1;
	tag_list_encode(list, a->own);
	*ret = (struct build_new){.name = name,
		.tags = list->tags,
		.memory = body.memory_mb << 20,
		.cpu = body.cpu_count * 1000};
	return 0;
}

static void e2b_builds_handle_build_create(struct http_request *req)
{
	static const struct answer_records records = {
		.aliases = &e2b_build, .rest = e2b_tags_put_rest};
	static const struct answer_form form = {
		E2B_RECORD(&records), .own_size = sizeof(struct buf), .finish = e2b_tags_finish};
	struct error e = {0};
	struct build_new what;
	struct answer *a = answer_new(req, &form);
	const cJSON *body = answer_json(a, &e);
	if (!body || build_decode(body, a, &what, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 202;
	a->op = op_build_create(&a->call, &what, NULL);
	answer_run(a);
}

/* ---- starting it ---- */

static struct op_build_ref e2b_builds_build_ref(struct answer *a)
{
	return (struct op_build_ref){
		.build = e2b_build_id_in(http_param(a->req, "build"), &a->call.memory),
		.template_name = http_param(a->req, "id")};
}

static void handle_build_start(struct http_request *req)
{
	struct error e = {0};
	struct answer *a = answer_new(req, &e2b_nothing_form);
	struct scratch *memory = &a->call.memory;
	struct build_spec *spec = scratch_alloc(memory, sizeof *spec);
	const struct op_build_ref ref = e2b_builds_build_ref(a);
	const cJSON *body = answer_json(a, &e);
	if (!body || e2b_build_spec(body, memory, spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 202;
	a->op = op_build_start(&a->call, &ref, spec);
	answer_run(a);
}

/* ---- how it goes ---- */

/* What `own` is: entries of the log in both of the forms that they are told in. */
struct build_logs {
	struct buf lines, entries;
	struct json_writer line_writer, entry_writer;
	bool with_status;
};

static void logs_finish(struct answer *a)
{
	struct build_logs *logs = a->own;
	buf_finish(&logs->lines);
	buf_finish(&logs->entries);
}

static void logs_add(struct build_logs *logs, const struct build_log_entry *entry)
{
	json_string(&logs->line_writer, entry->message);
	json_encode_alias_object(&logs->entry_writer, &e2b_build_log, entry);
}

/* At E2B an unknown user is refused by envd, whose error has a code in front. */
static void logs_put_message(struct json_writer *w, const char *reason)
{
	static const char unknown_user[] = "command failed: invalid username: '";
	const char *at = strstr(reason, unknown_user);
	const char *rest = at ? at + strlen("command failed: ") : reason;
	autobuf text = {0};
	buf_append(&text, reason, (size_t)(rest - reason));
	buf_append_str(&text, at ? "unauthenticated: " : "");
	buf_append_str(&text, rest);
	json_key(w, "message");
	json_string_n(w, text.data, text.len);
	w->out->failed |= text.failed;
}

static void logs_put_reason(struct json_writer *w, const struct build_view *v)
{
	char step[16];
	build_step_name(v->failed_step, step);
	json_key(w, "reason");
	json_begin_object(w);
	logs_put_message(w, v->reason[0] ? v->reason : "the build was cancelled");
	json_put_string(w, "step", step);
	json_end_object(w);
}

static int logs_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct build_logs *logs = a->own;
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind == OP_ROW) {
		logs_add(logs, event->log);
		return 0;
	}
	json_end_array(&logs->line_writer);
	json_end_array(&logs->entry_writer);
	a->out.failed |= logs->lines.failed || logs->entries.failed;
	json_begin_object(&w);
	if (logs->with_status)
		json_encode_alias(&w, &e2b_build_state, event->build);
	json_key(&w, "logs");
	json_raw_n(&w, logs->lines.data, logs->lines.len);
	json_key(&w, "logEntries");
	json_raw_n(&w, logs->entries.data, logs->entries.len);
	if (logs->with_status && event->build->status > BUILD_READY)
		logs_put_reason(&w, event->build);
	json_end_object(&w);
	return 0;
}

static uint64_t logs_offset(const struct http_request *req, const char *name)
{
	const char *text = http_query(req, name);
	size_t len = text ? strlen(text) : 0;
	return len > 0 && len < 19 && strspn(text, "0123456789") == len ? strtoull(text, NULL, 10)
									: 0;
}

static void logs_run(struct http_request *req, bool with_status)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct build_logs),
		.put = logs_put,
		.finish = logs_finish};
	struct answer *a = answer_new(req, &form);
	struct build_logs *logs = a->own;
	logs->with_status = with_status;
	logs->line_writer.out = &logs->lines;
	logs->entry_writer.out = &logs->entries;
	json_begin_array(&logs->line_writer);
	json_begin_array(&logs->entry_writer);
	a->op = op_build_log(&a->call, &(struct op_build_log){.ref = e2b_builds_build_ref(a),
					       .from = logs_offset(req, "logsOffset"),
					       .limit = LOG_PAGE});
	answer_run(a);
}

static void handle_build_status(struct http_request *req)
{
	logs_run(req, true);
}

static void handle_build_logs(struct http_request *req)
{
	logs_run(req, false);
}

static const struct http_route build_routes[] = {
	{HTTP_POST, "/v3/templates", e2b_builds_handle_build_create, E2B_BODY_LIMIT},
	{HTTP_POST, "/v2/templates/{id}/builds/{build}", handle_build_start, E2B_BODY_LIMIT},
	{HTTP_GET, "/templates/{id}/builds/{build}/status", handle_build_status, 0},
	{HTTP_GET, "/templates/{id}/builds/{build}/logs", handle_build_logs, 0},
};

const struct route_table e2b_build_table = ROUTE_TABLE(build_routes);
