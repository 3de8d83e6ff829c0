/*
 * Builds: asked for, started with their steps (build_spec.c), watched until they end. Files for
 * COPY come in between (build_files.c).
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/templates.h"

#define TAGS_MAX 100
#define LOG_PAGE 100

/* ---- asking for a build ---- */

struct build_body {
	const char *name, *alias;
	const cJSON *tags;
	int64_t cpu_count, memory_mb;
};

static const struct json_field build_fields[] = {
	{"name", JSON_STRING, offsetof(struct build_body, name), JSON_NOT_EMPTY, 0,
		TEMPLATE_REF_MAX},
	{"alias", JSON_STRING, offsetof(struct build_body, alias), JSON_NOT_EMPTY, 0,
		TEMPLATE_REF_MAX},
	{"tags", JSON_ARRAY, offsetof(struct build_body, tags), 0, 0, TAGS_MAX},
	{"cpuCount", JSON_INTEGER, offsetof(struct build_body, cpu_count), 0, 0, 1024},
	{"memoryMB", JSON_INTEGER, offsetof(struct build_body, memory_mb), 0, 0, 1 << 26},
};

struct build_call {
	struct http_request *req; /* NULL once the client has gone */
	char tags[TAGS_MAX][TEMPLATE_TAG_MAX + 1];
	size_t tag_count;
};

static void build_aborted(void *arg)
{
	((struct build_call *)arg)->req = NULL;
}

static void build_made(void *arg, struct build *build, const struct error *e)
{
	struct build_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct build_view view;
	if (call->req && e) {
		http_respond_error(call->req, e);
	} else if (call->req) {
		build_view(build, &view);
		json_begin_object(&w);
		json_put_string(&w, "templateID", view.template_id);
		json_put_string(&w, "buildID", view.id);
		json_put_bool(&w, "public", false);
		for (int i = 0; i < 2; i++) {
			json_key(&w, i ? "names" : "aliases");
			json_begin_array(&w);
			json_string(&w, view.name);
			json_end_array(&w);
		}
		json_key(&w, "tags");
		json_begin_array(&w);
		for (size_t i = 0; i < call->tag_count; i++)
			json_string(&w, e2b_tag_out(call->tags[i]));
		json_end_array(&w);
		json_end_object(&w);
		e2b_respond_json(call->req, 202, &body);
	}
	free(call);
}

static int add_tag(struct build_call *call, const char *tag, struct error *e)
{
	if (template_check_tag(tag, "tags", e) < 0)
		return -1;
	if (call->tag_count < TAGS_MAX)
		snprintf(
			call->tags[call->tag_count++], sizeof call->tags[0], "%s", e2b_tag_in(tag));
	return 0;
}

/* The tags that the build gets: those of the list, that of the name, or the one there always is. */
static int settle_tags(const struct build_body *body, const char *of_name, struct build_call *call,
	struct error *e)
{
	const cJSON *tag;
	cJSON_ArrayForEach(tag, body->tags)
	{
		if (!cJSON_IsString(tag))
			return error_set_field(
				e, ERROR_INVALID_FIELD, "tags", "\"tags\" must hold strings only");
		if (add_tag(call, tag->valuestring, e) < 0)
			return -1;
	}
	if (of_name[0] && add_tag(call, of_name, e) < 0)
		return -1;
	return call->tag_count ? 0 : add_tag(call, E2B_DEFAULT_TAG, e);
}

static int create_build(struct http_request *req, const cJSON *message, struct error *e)
{
	struct build_body body = {0};
	char name[TEMPLATE_NAME_MAX + 1], tag[TEMPLATE_TAG_MAX + 1];
	const char *tags[TAGS_MAX + 1] = {NULL};
	if (json_decode_known(message, build_fields, ARRAY_LEN(build_fields), "", &body, e) < 0)
		return -1;
	const char *reference = body.name ? body.name : body.alias;
	if (!reference)
		return error_set_field(e, ERROR_MISSING_FIELD, "name", "\"name\" is required");
	if (template_split(reference, name, tag, e) < 0)
		return -1;
	struct build_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	int r = settle_tags(&body, tag, call, e);
	for (size_t i = 0; i < call->tag_count; i++)
		tags[i] = call->tags[i];
	if (r == 0)
		r = build_create(server_of(req)->box,
			&(struct build_new){.tenant = tenant_of(req),
				.name = name,
				.tags = tags,
				.memory = body.memory_mb << 20,
				.cpu = body.cpu_count * 1000},
			build_made, call, e);
	if (r < 0)
		free(call);
	else
		http_on_abort(req, build_aborted, call);
	return r;
}

static void handle_create(struct http_request *req)
{
	struct error e = {0};
	cJSON *body = e2b_body(req);
	if (!body)
		return;
	if (create_build(req, body, &e) < 0)
		http_respond_error(req, &e);
	cJSON_Delete(body);
}

/* ---- starting it ---- */

struct build *e2b_build(struct http_request *req)
{
	struct error e;
	struct build_view view;
	const char *template_id = http_param(req, "id"), *id = http_param(req, "build");
	struct build *build = build_find(server_of(req)->box, tenant_of(req), id);
	if (build) {
		build_view(build, &view);
		if (strcmp(view.template_id, template_id) == 0 ||
			strcmp(view.name, template_id) == 0)
			return build;
	}
	error_set(&e, ERROR_NOT_FOUND, "build '%.64s' of template '%.128s' not found", id,
		template_id);
	http_respond_error(req, &e);
	return NULL;
}

/* Without an abort callback the request stays until it is answered, whether its client does or not.
 */
static void start_stored(void *arg)
{
	e2b_respond_nothing(arg, 202);
}

static void handle_start(struct http_request *req)
{
	struct error e = {0};
	autoscratch memory = {0};
	struct build_spec spec = {0};
	struct build *build = e2b_build(req);
	cJSON *body = build ? e2b_body(req) : NULL;
	if (!body)
		return;
	if (e2b_build_spec(body, &memory, &spec, &e) < 0 || build_start(build, &spec, &e) < 0)
		http_respond_error(req, &e);
	else
		build_when_stored(build, start_stored, req);
	cJSON_Delete(body);
}

/* ---- how it goes ---- */

static void put_entry(void *arg, const struct build_log_entry *entry)
{
	struct json_writer *w = arg;
	char step[16];
	build_step_name(entry->step, step);
	json_begin_object(w);
	json_put_time(w, "timestamp", entry->time_ms);
	json_put_string(w, "level", entry->level);
	json_put_string(w, "message", entry->message);
	json_put_string(w, "step", step);
	json_end_object(w);
}

static void put_line(void *arg, const struct build_log_entry *entry)
{
	json_string(arg, entry->message);
}

static void put_reason(struct json_writer *w, const struct build_view *view)
{
	char step[16];
	build_step_name(view->failed_step, step);
	json_key(w, "reason");
	json_begin_object(w);
	json_put_string(w, "message", view->reason[0] ? view->reason : "the build was cancelled");
	json_put_string(w, "step", step);
	json_end_object(w);
}

static void put_logs(struct json_writer *w, struct build *build, uint64_t from, size_t max)
{
	json_key(w, "logs");
	json_begin_array(w);
	build_log_read(build, from, max, put_line, w);
	json_end_array(w);
	json_key(w, "logEntries");
	json_begin_array(w);
	build_log_read(build, from, max, put_entry, w);
	json_end_array(w);
}

static uint64_t offset_of(const struct http_request *req, const char *name)
{
	const char *text = http_query(req, name);
	size_t len = text ? strlen(text) : 0;
	return len > 0 && len < 19 && strspn(text, "0123456789") == len ? strtoull(text, NULL, 10)
									: 0;
}

static void handle_status(struct http_request *req)
{
	static const char *const names[BUILD_STATUS_COUNT] = {
		"waiting", "building", "ready", "error", "error"};
	struct build *build = e2b_build(req);
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct build_view view;
	if (!build)
		return;
	build_view(build, &view);
	json_begin_object(&w);
	json_put_string(&w, "templateID", view.template_id);
	json_put_string(&w, "buildID", view.id);
	json_put_string(&w, "status", names[view.status]);
	put_logs(&w, build, offset_of(req, "logsOffset"), LOG_PAGE);
	if (view.status == BUILD_FAILED || view.status == BUILD_CANCELLED)
		put_reason(&w, &view);
	json_end_object(&w);
	e2b_respond_json(req, 200, &body);
}

static void handle_logs(struct http_request *req)
{
	struct build *build = e2b_build(req);
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (!build)
		return;
	json_begin_object(&w);
	put_logs(&w, build, offset_of(req, "logsOffset"), LOG_PAGE);
	json_end_object(&w);
	e2b_respond_json(req, 200, &body);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/v3/templates", handle_create, E2B_BODY_LIMIT},
	{HTTP_POST, "/v2/templates/{id}/builds/{build}", handle_start, E2B_BODY_LIMIT},
	{HTTP_GET, "/templates/{id}/builds/{build}/status", handle_status, 0},
	{HTTP_GET, "/templates/{id}/builds/{build}/logs", handle_logs, 0},
};

const struct route_table e2b_build_table = ROUTE_TABLE(routes);
