/* /v1/templates: the catalogue, tags, deletion. */
#include <stdlib.h>
#include <string.h>

#include "api/templates.h"

static void put_config(struct json_writer *w, const struct template_config *c);

/* ---- as JSON ---- */

static void put_strings(struct json_writer *w, const char *key, const char *list, size_t len)
{
	if (len == 0)
		return;
	json_key(w, key);
	json_begin_array(w);
	for (size_t at = 0; at < len; at += strlen(list + at) + 1)
		json_string(w, list + at);
	json_end_array(w);
}

static void put_env(struct json_writer *w, const char *env, size_t len)
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

static void put_text(struct json_writer *w, const char *key, const char *text)
{
	if (text[0])
		json_put_string(w, key, text);
}

static void put_config(struct json_writer *w, const struct template_config *c)
{
	put_text(w, "user", c->user);
	put_text(w, "workdir", c->workdir);
	put_env(w, c->env, c->env_len);
	put_strings(w, "start", c->start, c->start_len);
	put_text(w, "ready", c->ready);
	put_strings(w, "entrypoint", c->entrypoint, c->entrypoint_len);
	put_strings(w, "command", c->command, c->command_len);
	put_strings(w, "ports", c->ports, c->ports_len);
}

static void put_tags_of(struct json_writer *w, const struct template *t, const struct build *build)
{
	struct tag_view tag;
	json_key(w, "tags");
	json_begin_array(w);
	for (size_t i = 0; t && template_tag_at(t, i, &tag); i++)
		if (tag.build == build)
			json_string(w, tag.tag);
	json_end_array(w);
}

void encode_build(struct json_writer *w, const struct build *build)
{
	struct build_view v;
	char step[16];
	build_view(build, &v);
	json_begin_object(w);
	json_put_string(w, "id", v.id);
	json_put_string(w, "templateId", v.template_id);
	json_put_string(w, "template", v.name);
	json_put_string(w, "status", build_status_name(v.status));
	if (v.reason[0]) {
		build_step_name(v.failed_step, step);
		json_put_string(w, "reason", v.reason);
		json_put_string(w, "failedStep", step);
	}
	put_text(w, "from", v.from);
	put_text(w, "digest", v.digest);
	put_tags_of(w, build_template(build), build);
	json_put_time(w, "createdAt", v.created_ms);
	if (v.started_ms)
		json_put_time(w, "startedAt", v.started_ms);
	if (v.ended_ms)
		json_put_time(w, "endedAt", v.ended_ms);
	json_put_int(w, "size", v.bytes);
	json_put_int(w, "logEntries", (int64_t)v.log_entries);
	put_config(w, &v.config);
	json_end_object(w);
}

void api_respond_build(struct http_request *req, int status, const struct build *build)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	encode_build(&w, build);
	api_respond_json(req, status, &body);
}

static void put_tags(struct json_writer *w, const struct template *t)
{
	struct tag_view tag;
	struct build_view build;
	json_key(w, "tags");
	json_begin_array(w);
	for (size_t i = 0; template_tag_at(t, i, &tag); i++) {
		build_view(tag.build, &build);
		json_begin_object(w);
		json_put_string(w, "tag", tag.tag);
		json_put_string(w, "build", build.id);
		json_put_time(w, "createdAt", tag.created_ms);
		json_end_object(w);
	}
	json_end_array(w);
}

/* Without braces. */
static void put_template(struct json_writer *w, const struct template *t)
{
	struct template_view v;
	struct build_view build = {.status = BUILD_READY};
	template_view(t, &v);
	const struct build *shown = v.latest ? v.latest : v.newest;
	if (shown)
		build_view(shown, &build);
	json_put_string(w, "id", v.id);
	json_put_string(w, "name", v.name);
	json_put_string(w, "description", v.description);
	json_put_bool(w, "default", v.is_default);
	json_put_bool(w, "builtIn", v.built_in);
	json_put_string(w, "status", build_status_name(build.status));
	json_put_int(w, "size", build.bytes);
	if (v.created_ms)
		json_put_time(w, "createdAt", v.created_ms);
	put_tags(w, t);
}

/* ---- list, get ---- */

static void handle_list(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	const char *tenant = tenant_of(req);
	json_begin_object(&w);
	json_key(&w, "templates");
	json_begin_array(&w);
	for (struct template *t = template_first(server_of(req)->box, tenant); t;
		t = template_next(t, tenant)) {
		json_begin_object(&w);
		put_template(&w, t);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* The template that the path names by id or name, or NULL after the request was answered. */
static struct template *named(struct http_request *req)
{
	const char *name = http_param(req, "template");
	struct template *t = template_find(server_of(req)->box, tenant_of(req), name);
	struct error e;
	if (!t) {
		error_set(&e, ERROR_TEMPLATE_NOT_FOUND, "there is no template '%.128s'", name);
		http_respond_error(req, &e);
	}
	return t;
}

static void handle_get(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct build *build;
	struct template *t = named(req);
	if (!t)
		return;
	json_begin_object(&w);
	put_template(&w, t);
	json_key(&w, "builds");
	json_begin_array(&w);
	for (size_t i = 0; (build = template_build_at(t, i)) != NULL; i++)
		encode_build(&w, build);
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* What a create with this reference would begin with. */
static void handle_resolve(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct template *t;
	struct build *build;
	struct error e;
	const char *ref = http_query(req, "ref");
	if (!ref) {
		error_set_field(&e, ERROR_MISSING_FIELD, "ref", "\"ref\" is missing");
		http_respond_error(req, &e);
		return;
	}
	if (template_resolve(server_of(req)->box, tenant_of(req), ref, &t, &build, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	json_begin_object(&w);
	put_template(&w, t);
	if (build) {
		json_key(&w, "build");
		encode_build(&w, build);
	}
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* ---- changes ---- */

struct template_call {
	struct http_request *req; /* NULL once the client has gone */
};

static void call_aborted(void *arg)
{
	((struct template_call *)arg)->req = NULL;
}

struct template_call *template_call_new(struct http_request *req)
{
	struct template_call *call = malloc(sizeof *call);
	if (!call)
		abort();
	call->req = req;
	return call;
}

void template_call_done(void *arg, const struct error *e)
{
	struct template_call *call = arg;
	struct buf nothing = {0};
	if (call->req && e)
		http_respond_error(call->req, e);
	else if (call->req)
		http_respond(call->req, 204, NULL, &nothing);
	free(call);
}

/* r: what the change that was asked for said at once. */
static void await(
	struct http_request *req, struct template_call *call, int r, const struct error *e)
{
	if (r < 0) {
		free(call);
		http_respond_error(req, e);
	} else {
		http_on_abort(req, call_aborted, call);
	}
}

static void handle_delete(struct http_request *req)
{
	struct error e;
	struct template *t = named(req);
	if (!t)
		return;
	struct template_call *call = template_call_new(req);
	await(req, call, template_delete(t, template_call_done, call, &e), &e);
}

/* {"build"}: an id or tag; without it the build that the name stands for. */
static void handle_tag(struct http_request *req)
{
	struct {
		const char *build;
	} fields = {0};
	static const struct json_field table[] = {
		{"build", JSON_STRING, 0, JSON_NOT_EMPTY, 0, TEMPLATE_REF_MAX}};
	struct template *t = named(req), *other;
	struct build *build = NULL;
	struct error e = {0};
	cJSON *body = t ? api_body(req) : NULL;
	if (!body)
		return;
	struct template_call *call = template_call_new(req);
	int r = json_decode(body, table, ARRAY_LEN(table), "", &fields, &e);
	if (r == 0) {
		autobuf ref = {0};
		struct template_view view;
		template_view(t, &view);
		buf_append_str(&ref, fields.build && id_is_valid(fields.build) ? "" : view.id);
		if (fields.build && ref.len > 0)
			buf_append_char(&ref, ':');
		buf_append_str(&ref, fields.build ? fields.build : "");
		buf_append_char(&ref, '\0');
		r = template_resolve(
			server_of(req)->box, tenant_of(req), ref.data, &other, &build, &e);
	}
	if (r == 0 && (!build || other != t))
		r = error_set_field(&e, ERROR_NOT_FOUND, "build", "the template has no such build");
	if (r == 0)
		r = template_tag(build, http_param(req, "tag"), template_call_done, call, &e);
	await(req, call, r, &e);
	cJSON_Delete(body);
}

static void handle_untag(struct http_request *req)
{
	struct error e;
	struct template *t = named(req);
	if (!t)
		return;
	struct template_call *call = template_call_new(req);
	await(req, call, template_untag(t, http_param(req, "tag"), template_call_done, call, &e),
		&e);
}

static const struct http_route template_routes[] = {
	{HTTP_GET, "/v1/templates", handle_list, 0},
	{HTTP_GET, "/v1/templates/resolve", handle_resolve, 0},
	{HTTP_GET, "/v1/templates/{template}", handle_get, 0},
	{HTTP_DELETE, "/v1/templates/{template}", handle_delete, 0},
	{HTTP_PUT, "/v1/templates/{template}/tags/{tag}", handle_tag, SMALL_BODY_LIMIT},
	{HTTP_DELETE, "/v1/templates/{template}/tags/{tag}", handle_untag, 0},
};

const struct route_table template_table = ROUTE_TABLE(template_routes);
