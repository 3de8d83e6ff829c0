/* /v1/snapshots and /v1/sandboxes/{id}/snapshots: create, list, get, retag, delete, lineage; and
 * /v1/sandboxes/{id}/fork. */
#include "box/disk/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/encode.h"
#include "api/lookup.h"

static void encode_snapshot(struct json_writer *w, const struct snapshot_view *view)
{
	json_put_string(w, "id", view->id);
	json_put_string(w, "name", view->name);
	json_put_string(w, "tag", view->tag);
	json_put_string(w, "description", view->description);
	json_put_string(w, "status", view->deleted ? "deleted" : view->lost ? "lost" : "ready");
	json_put_string(w, "parent", view->parent);
	json_put_string(w, "sandboxId", view->sandbox);
	json_put_string(w, "template", view->template_name);
	json_put_time(w, "createdAt", view->created_ms);
	if (view->env_len)
		json_put_env(w, "env", view->env, view->env_len);
	if (view->metadata[0]) {
		json_key(w, "metadata");
		json_raw(w, view->metadata);
	}
	if (view->files >= 0) { /* otherwise they are being counted */
		json_put_int(w, "sizeBytes", view->bytes);
		json_put_int(w, "fileCount", view->files);
	}
}

static void respond(
	struct http_request *req, int status, const struct snapshot *s, int64_t frozen_us)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct snapshot_view view;
	snapshot_view(s, &view);
	json_begin_object(&w);
	encode_snapshot(&w, &view);
	if (frozen_us >= 0)
		encode_milliseconds(&w, "frozenMs", frozen_us);
	json_end_object(&w);
	api_respond_json(req, status, &body);
}

void api_respond_snapshot(struct http_request *req, int status, const struct snapshot *s)
{
	respond(req, status, s, -1);
}

/* The snapshot that the path names, or NULL after the request was answered. */
static struct snapshot *path_snapshot(struct http_request *req)
{
	struct error e;
	struct snapshot *s =
		snapshot_find(server_of(req)->box, tenant_of(req), http_param(req, "snapshot"));
	if (!s) {
		error_set(&e, ERROR_NOT_FOUND, "there is no such snapshot");
		http_respond_error(req, &e);
	}
	return s;
}

/* ---- create ---- */

struct create_body {
	const char *name, *tag, *description;
};

static const struct json_field create_fields[] = {
	{"name", JSON_STRING, offsetof(struct create_body, name), 0, 0, 128},
	{"tag", JSON_STRING, offsetof(struct create_body, tag), JSON_NOT_EMPTY, 0, 128},
	{"description", JSON_STRING, offsetof(struct create_body, description), 0, 0, 1024},
};

static void created(void *arg, struct snapshot *s, int64_t frozen_us, const struct error *e)
{
	struct api_call *call = arg;
	if (call->req && e)
		http_respond_error(call->req, e);
	else if (call->req)
		respond(call->req, 201, s, frozen_us);
	free(call);
}

static void handle_create(struct http_request *req)
{
	struct create_body fields = {0};
	struct error e;
	struct sandbox *s = api_sandbox(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	if (json_decode(body, create_fields, ARRAY_LEN(create_fields), "", &fields, &e) < 0) {
		http_respond_error(req, &e);
	} else {
		const struct snapshot_spec spec = {
			.name = fields.name, .tag = fields.tag, .description = fields.description};
		struct api_call *call = api_call_new(req, NULL);
		if (snapshot_create(s, &spec, created, call, &e) < 0)
			created(call, NULL, 0, &e);
	}
	cJSON_Delete(body);
}

/* ---- list, get, lineage ---- */

struct list_query {
	const char *name, *tag, *sandbox;
	struct api_page page;
};

static int parse_query(struct http_request *req, struct list_query *q, struct error *e)
{
	static const char *const known[] = {"name", "tag", "sandbox", "limit", "cursor"};
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		bool is_known = false;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			is_known |= strcmp(name, known[k]) == 0;
		if (!is_known)
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "there is no filter '%.64s'", name);
	}
	*q = (struct list_query){.name = http_query(req, "name"),
		.tag = http_query(req, "tag"),
		.sandbox = http_query(req, "sandbox")};
	return api_parse_page(req, &q->page, e);
}

static bool matches(const struct list_query *q, const struct snapshot_view *view)
{
	return (!q->name || strcmp(q->name, view->name) == 0) &&
	       (!q->tag || strcmp(q->tag, view->tag) == 0) &&
	       (!q->sandbox || strcmp(q->sandbox, view->sandbox) == 0);
}

static void handle_list(struct http_request *req)
{
	struct error e;
	struct list_query q;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct snapshot_view view, last = {0};
	if (parse_query(req, &q, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	json_begin_object(&w);
	json_key(&w, "snapshots");
	json_begin_array(&w);
	struct snapshot *s = snapshot_first(
		server_of(req)->box, tenant_of(req), q.page.before_ms, q.page.before_id);
	for (; s; s = snapshot_next(s)) {
		snapshot_view(s, &view);
		if (!matches(&q, &view))
			continue;
		if (q.page.limit-- == 0)
			break;
		json_begin_object(&w);
		encode_snapshot(&w, &view);
		json_end_object(&w);
		last = view;
	}
	json_end_array(&w);
	if (s)
		api_put_cursor(&w, last.created_ms, last.id);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static void handle_get(struct http_request *req)
{
	struct snapshot *s = path_snapshot(req);
	if (s)
		respond(req, 200, s, -1);
}

/* From itself to the root. */
static void handle_lineage(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	const struct snapshot *s = path_snapshot(req);
	if (!s)
		return;
	json_begin_object(&w);
	json_key(&w, "lineage");
	json_begin_array(&w);
	for (; s; s = snapshot_parent(s)) {
		struct snapshot_view view;
		snapshot_view(s, &view);
		json_begin_object(&w);
		encode_snapshot(&w, &view);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* ---- retag, delete ---- */

static void retagged(void *arg, const struct error *e)
{
	struct api_call *call = arg;
	struct http_request *req = call->req;
	struct error gone;
	struct snapshot *s =
		req ? snapshot_find(server_of(req)->box, tenant_of(req), call->id) : NULL;
	if (req && e) {
		http_respond_error(req, e);
	} else if (s) {
		respond(req, 200, s, -1);
	} else if (req) {
		error_set(&gone, ERROR_NOT_FOUND, "the snapshot was deleted");
		http_respond_error(req, &gone);
	}
	free(call);
}

/* null, or a text. */
static int decode_tag(const cJSON *body, const char **ret, struct error *e)
{
	const cJSON *tag = cJSON_GetObjectItemCaseSensitive(body, "tag");
	if (cJSON_GetArraySize(body) > (tag ? 1 : 0))
		return error_set(e, ERROR_UNKNOWN_FIELD, "only \"tag\" can be changed");
	if (!tag)
		return error_set_field(
			e, ERROR_MISSING_FIELD, "tag", "\"tag\" is required: a text, or null");
	if (!cJSON_IsNull(tag) && !cJSON_IsString(tag))
		return error_set_field(
			e, ERROR_INVALID_FIELD, "tag", "\"tag\" must be a text, or null");
	*ret = cJSON_IsString(tag) ? tag->valuestring : NULL;
	return 0;
}

static void handle_retag(struct http_request *req)
{
	const char *tag = NULL;
	struct error e;
	struct snapshot *s = path_snapshot(req);
	cJSON *body = s ? api_body(req) : NULL;
	if (!body)
		return;
	struct snapshot_view view;
	snapshot_view(s, &view);
	struct api_call *call = api_call_new(req, view.id);
	if (decode_tag(body, &tag, &e) < 0 || snapshot_retag(s, tag, retagged, call, &e) < 0)
		retagged(call, &e);
	cJSON_Delete(body);
}

static void handle_delete(struct http_request *req)
{
	struct error e;
	struct snapshot *s = path_snapshot(req);
	if (!s)
		return;
	struct api_call *call = api_call_new(req, NULL);
	if (snapshot_delete(s, api_call_done, call, &e) < 0)
		api_call_done(call, &e);
}

/* ---- fork ---- */

struct fork_body {
	int64_t count;
};

static const struct json_field fork_fields[] = {
	{"count", JSON_INTEGER, offsetof(struct fork_body, count), 0, 1, FORKS_MAX},
};

static void forked(void *arg, const struct fork_result *result, const struct error *e)
{
	struct api_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (!call->req) {
		/* Nobody has their ids. */
		for (size_t i = 0; result && i < result->count; i++)
			sandbox_destroy(result->sandboxes[i], NULL, NULL);
	} else if (e) {
		http_respond_error(call->req, e);
	} else {
		json_begin_object(&w);
		json_key(&w, "sandboxes");
		json_begin_array(&w);
		for (size_t i = 0; i < result->count; i++) {
			struct sandbox_view view;
			sandbox_view(result->sandboxes[i], &view);
			encode_sandbox(&w, &view);
		}
		json_end_array(&w);
		encode_milliseconds(&w, "frozenMs", result->frozen_us);
		json_end_object(&w);
		api_respond_json(call->req, 201, &body);
	}
	free(call);
}

static void handle_fork(struct http_request *req)
{
	struct fork_body fields = {.count = 1};
	struct error e;
	struct sandbox *s = api_sandbox(req);
	if (!s || api_optional_body(req, fork_fields, ARRAY_LEN(fork_fields), &fields) < 0)
		return;
	struct api_call *call = api_call_new(req, NULL);
	if (sandbox_fork(s, (unsigned)fields.count, forked, call, &e) < 0)
		forked(call, NULL, &e);
}

static const struct http_route snapshot_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/snapshots", handle_create, SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fork", handle_fork, SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/snapshots", handle_list, 0},
	{HTTP_GET, "/v1/snapshots/{snapshot}", handle_get, 0},
	{HTTP_PATCH, "/v1/snapshots/{snapshot}", handle_retag, SMALL_BODY_LIMIT},
	{HTTP_DELETE, "/v1/snapshots/{snapshot}", handle_delete, 0},
	{HTTP_GET, "/v1/snapshots/{snapshot}/lineage", handle_lineage, 0},
};

const struct route_table snapshot_table = ROUTE_TABLE(snapshot_routes);
