/* /templates/tags: names for builds that are ready. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/templates.h"

#define TAGS_MAX 100

struct tags_body {
	const char *target, *name;
	const cJSON *tags;
};

static const struct json_field assign_fields[] = {
	{"target", JSON_STRING, offsetof(struct tags_body, target), JSON_REQUIRED | JSON_NOT_EMPTY,
		0, TEMPLATE_REF_MAX},
	{"tags", JSON_ARRAY, offsetof(struct tags_body, tags), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		TAGS_MAX},
};

static const struct json_field remove_fields[] = {
	{"name", JSON_STRING, offsetof(struct tags_body, name), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		TEMPLATE_REF_MAX},
	{"tags", JSON_ARRAY, offsetof(struct tags_body, tags), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		TAGS_MAX},
};

static int check_tags(const cJSON *tags, struct error *e)
{
	const cJSON *tag;
	cJSON_ArrayForEach(tag, tags)
	{
		if (!cJSON_IsString(tag))
			return error_set_field(
				e, ERROR_INVALID_FIELD, "tags", "\"tags\" must hold strings only");
		if (template_check_tag(tag->valuestring, "tags", e) < 0)
			return -1;
	}
	return 0;
}

/* Several changes of tags, answered when the last is stored, with the first thing that went wrong.
 */
struct tags_call {
	struct http_request *req; /* NULL once the client has gone */
	unsigned waiting;
	struct error failure;
	struct buf answer; /* empty: 204 */
};

static void tags_aborted(void *arg)
{
	((struct tags_call *)arg)->req = NULL;
}

static void note_failure(struct tags_call *call, const struct error *e)
{
	if (call->failure.code == ERROR_NONE)
		call->failure = *e;
}

static void tags_changed(void *arg, const struct error *e)
{
	struct tags_call *call = arg;
	if (e)
		note_failure(call, e);
	if (--call->waiting > 0)
		return;
	if (call->req && call->failure.code != ERROR_NONE)
		http_respond_error(call->req, &call->failure);
	else if (call->req && call->answer.len > 0)
		e2b_respond_json(call->req, 201, &call->answer);
	else if (call->req)
		e2b_respond_nothing(call->req, 204);
	buf_finish(&call->answer);
	free(call);
}

/* It waits for itself until everything was asked for. */
static struct tags_call *tags_begin(struct http_request *req)
{
	struct tags_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->waiting = 1;
	http_on_abort(req, tags_aborted, call);
	return call;
}

static void assign(struct tags_call *call, struct build *build, const cJSON *tags)
{
	struct error e;
	struct build_view view;
	const cJSON *tag;
	struct json_writer w = {.out = &call->answer};
	build_view(build, &view);
	json_begin_object(&w);
	json_put_string(&w, "buildID", view.id);
	json_key(&w, "tags");
	json_begin_array(&w);
	cJSON_ArrayForEach(tag, tags)
	{
		json_string(&w, tag->valuestring);
		if (template_tag(build, e2b_tag_in(tag->valuestring), tags_changed, call, &e) < 0)
			note_failure(call, &e);
		else
			call->waiting++;
	}
	json_end_array(&w);
	json_end_object(&w);
}

static int find_target(
	struct http_request *req, const char *target, struct build **ret, struct error *e)
{
	autoscratch memory = {0};
	struct template *t;
	if (template_resolve(server_of(req)->box, tenant_of(req), e2b_reference_in(target, &memory),
		    &t, ret, e) < 0)
		return -1;
	if (!*ret)
		return error_set(e, ERROR_INVALID_REQUEST, "a built-in template has no tags");
	return 0;
}

static void handle_assign(struct http_request *req)
{
	struct error e = {0};
	struct tags_body fields = {0};
	struct build *build;
	cJSON *body = e2b_body(req);
	if (!body)
		return;
	if (json_decode_known(body, assign_fields, ARRAY_LEN(assign_fields), "", &fields, &e) < 0 ||
		check_tags(fields.tags, &e) < 0 ||
		find_target(req, fields.target, &build, &e) < 0) {
		http_respond_error(req, &e);
	} else {
		struct tags_call *call = tags_begin(req);
		assign(call, build, fields.tags);
		tags_changed(call, NULL);
	}
	cJSON_Delete(body);
}

static void handle_remove(struct http_request *req)
{
	struct error e = {0};
	struct tags_body fields = {0};
	const cJSON *tag;
	cJSON *body = e2b_body(req);
	if (!body)
		return;
	struct template *t = NULL;
	if (json_decode_known(body, remove_fields, ARRAY_LEN(remove_fields), "", &fields, &e) ==
			0 &&
		check_tags(fields.tags, &e) == 0 &&
		!(t = template_find(server_of(req)->box, tenant_of(req), fields.name)))
		error_set(&e, ERROR_TEMPLATE_NOT_FOUND, "template '%.128s' not found", fields.name);
	if (!t) {
		http_respond_error(req, &e);
		cJSON_Delete(body);
		return;
	}
	struct tags_call *call = tags_begin(req);
	cJSON_ArrayForEach(tag, fields.tags)
	{
		if (template_untag(t, e2b_tag_in(tag->valuestring), tags_changed, call, &e) < 0)
			note_failure(call, &e);
		else
			call->waiting++;
	}
	tags_changed(call, NULL);
	cJSON_Delete(body);
}

static void handle_list(struct http_request *req)
{
	struct template *t = e2b_template(req);
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct tag_view tag;
	struct build_view build;
	if (!t)
		return;
	json_begin_array(&w);
	for (size_t i = 0; template_tag_at(t, i, &tag); i++) {
		build_view(tag.build, &build);
		json_begin_object(&w);
		json_put_string(&w, "tag", e2b_tag_out(tag.tag));
		json_put_string(&w, "buildID", build.id);
		json_put_time(&w, "createdAt", tag.created_ms);
		json_end_object(&w);
	}
	json_end_array(&w);
	e2b_respond_json(req, 200, &body);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/templates/tags", handle_assign, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/templates/tags", handle_remove, E2B_BODY_LIMIT},
	{HTTP_GET, "/templates/{id}/tags", handle_list, 0},
};

const struct route_table e2b_tag_table = ROUTE_TABLE(routes);
