/* /v1/templates: the catalogue, tags, deletion. */
#include <string.h>

#include "answer/json_body.h"
#include "api/templates.h"
#include "op/template.h"

/* ---- as JSON ---- */

static void template_put_strings(
	struct json_writer *w, const char *key, const char *list, size_t len)
{
	if (len == 0)
		return;
	json_key(w, key);
	json_begin_array(w);
	for (size_t at = 0; at < len; at += strlen(list + at) + 1)
		json_string(w, list + at);
	json_end_array(w);
}

static void template_put_env(struct json_writer *w, const char *env, size_t len)
{
	json_key(w, "env");
	json_begin_object(w);
	for (size_t at = 0; at < len; at += strlen(env + at) + 1) {
		const char *entry = env + at;
		autobuf name = {0};
		buf_append(&name, entry, strcspn(entry, "="));
		buf_append_char(&name, '\0');
		if (!name.failed)
			json_put_string(w, name.data, entry + name.len);
	}
	json_end_object(w);
}

static void template_put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text[0])
		json_put_string(w, key, text);
}

static void template_put_config(struct json_writer *w, const struct template_config *c)
{
	template_put_text(w, "user", c->user);
	template_put_text(w, "workdir", c->workdir);
	template_put_env(w, c->env, c->env_len);
	template_put_strings(w, "start", c->start, c->start_len);
	template_put_text(w, "ready", c->ready);
	template_put_strings(w, "entrypoint", c->entrypoint, c->entrypoint_len);
	template_put_strings(w, "command", c->command, c->command_len);
	template_put_strings(w, "ports", c->ports, c->ports_len);
}

static void build_put_tags(struct json_writer *w, const char *const *tags)
{
	json_key(w, "tags");
	json_begin_array(w);
	for (; *tags; tags++)
		json_string(w, *tags);
	json_end_array(w);
}

void encode_build(struct json_writer *w, const struct build_view *v)
{
	char step[16];
	json_begin_object(w);
	json_put_string(w, "id", v->id);
	json_put_string(w, "templateId", v->template_id);
	json_put_string(w, "template", v->name);
	json_put_string(w, "status", build_status_name(v->status));
	if (v->reason[0]) {
		build_step_name(v->failed_step, step);
		json_put_string(w, "reason", v->reason);
		json_put_string(w, "failedStep", step);
	}
	template_put_text(w, "from", v->from);
	template_put_text(w, "digest", v->digest);
	build_put_tags(w, v->tags);
	json_put_time(w, "createdAt", v->created_ms);
	if (v->started_ms)
		json_put_time(w, "startedAt", v->started_ms);
	if (v->ended_ms)
		json_put_time(w, "endedAt", v->ended_ms);
	json_put_int(w, "size", v->bytes);
	json_put_int(w, "logEntries", (int64_t)v->log_entries);
	template_put_config(w, &v->config);
	json_end_object(w);
}

int build_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	encode_build(&w, event->build);
	return 0;
}

static void template_put_tags(struct json_writer *w, const struct template_view *v)
{
	json_key(w, "tags");
	json_begin_array(w);
	for (size_t i = 0; i < v->tag_count; i++) {
		json_begin_object(w);
		json_put_string(w, "tag", v->tags[i].tag);
		json_put_string(w, "build", v->tags[i].build);
		json_put_time(w, "createdAt", v->tags[i].created_ms);
		json_end_object(w);
	}
	json_end_array(w);
}

/* Without braces. */
static void template_put_fields(struct json_writer *w, const struct template_view *v)
{
	const struct build_view *shown = v->latest ? v->latest : v->build_count ? v->builds : NULL;
	json_put_string(w, "id", v->id);
	json_put_string(w, "name", v->name);
	json_put_string(w, "description", v->description);
	json_put_bool(w, "default", v->is_default);
	json_put_bool(w, "builtIn", v->built_in);
	json_put_string(w, "status", build_status_name(shown ? shown->status : BUILD_READY));
	json_put_int(w, "size", shown ? shown->bytes : 0);
	if (v->created_ms)
		json_put_time(w, "createdAt", v->created_ms);
	template_put_tags(w, v);
}

/* ---- list, get ---- */

/* Begins the object that the answer is. */
static struct answer *template_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = api_answer(req, form);
	struct json_writer *w = a->own;
	w->out = &a->out;
	json_begin_object(w);
	return a;
}

static int api_templates_template_list_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		json_begin_object(w);
		template_put_fields(w, event->template);
		json_end_object(w);
	} else {
		json_end_array(w);
		json_end_object(w);
	}
	return 0;
}

static void api_templates_handle_template_list(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = api_templates_template_list_put};
	struct answer *a = template_answer(req, &form);
	struct json_writer *w = a->own;
	json_key(w, "templates");
	json_begin_array(w);
	a->op = op_template_list(&a->call);
	answer_run(a);
}

static int api_templates_template_get_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	const struct template_view *v = event->template;
	(void)e;
	json_begin_object(&w);
	template_put_fields(&w, v);
	json_key(&w, "builds");
	json_begin_array(&w);
	for (size_t i = 0; i < v->build_count; i++)
		encode_build(&w, &v->builds[i]);
	json_end_array(&w);
	json_end_object(&w);
	return 0;
}

static void api_templates_handle_template_get(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = api_templates_template_get_put};
	struct answer *a = api_answer(req, &form);
	a->op = op_template_get(&a->call, http_param(req, "template"));
	answer_run(a);
}

static int template_resolve_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		template_put_fields(w, event->template);
		return 0;
	}
	if (event->build) {
		json_key(w, "build");
		encode_build(w, event->build);
	}
	json_end_object(w);
	return 0;
}

/* What a create with this reference would begin with. */
static void handle_template_resolve(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = template_resolve_put};
	struct error e;
	const char *ref = http_query(req, "ref");
	struct answer *a = template_answer(req, &form);
	if (!ref) {
		error_set_field(&e, ERROR_MISSING_FIELD, "ref", "\"ref\" is missing");
		answer_refuse(a, &e);
		return;
	}
	a->op = op_template_resolve(&a->call, ref);
	answer_run(a);
}

/* ---- changes ---- */

static const struct answer_form template_changed_form = {.pace = ANSWER_WHOLE};

static struct answer *template_change(struct http_request *req)
{
	struct answer *a = api_answer(req, &template_changed_form);
	a->status = 204;
	return a;
}

static void api_templates_handle_template_delete(struct http_request *req)
{
	struct answer *a = template_change(req);
	a->op = op_template_delete(
		&a->call, &(struct op_template_delete){http_param(req, "template"), false});
	answer_run(a);
}

/* The template and the tag that the path names. */
static struct op_template_tags template_tags_of(struct answer *a)
{
	const char **tags = scratch_alloc(&a->call.memory, 2 * sizeof *tags);
	tags[0] = http_param(a->req, "tag");
	return (struct op_template_tags){.name = http_param(a->req, "template"), .tags = tags};
}

/* {"build"}: an id or tag; without it the build that the name stands for. */
static void handle_template_tag(struct http_request *req)
{
	static const struct json_field fields[] = {{"build", JSON_STRING,
		offsetof(struct op_template_tags, target), JSON_NOT_EMPTY, 0, TEMPLATE_REF_MAX}};
	struct error e = {0};
	struct answer *a = template_change(req);
	struct op_template_tags request = template_tags_of(a);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || json_decode(body, fields, ARRAY_LEN(fields), "", &request, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_template_tag(&a->call, &request);
	answer_run(a);
}

static void handle_template_untag(struct http_request *req)
{
	struct answer *a = template_change(req);
	struct op_template_tags request = template_tags_of(a);
	a->op = op_template_untag(&a->call, &request);
	answer_run(a);
}

static const struct http_route template_routes[] = {
	{HTTP_GET, "/v1/templates", api_templates_handle_template_list, 0},
	{HTTP_GET, "/v1/templates/resolve", handle_template_resolve, 0},
	{HTTP_GET, "/v1/templates/{template}", api_templates_handle_template_get, 0},
	{HTTP_DELETE, "/v1/templates/{template}", api_templates_handle_template_delete, 0},
	{HTTP_PUT, "/v1/templates/{template}/tags/{tag}", handle_template_tag, SMALL_BODY_LIMIT},
	{HTTP_DELETE, "/v1/templates/{template}/tags/{tag}", handle_template_untag, 0},
};

const struct route_table template_table = ROUTE_TABLE(template_routes);
