/*
 * Reusable bases for sandboxes: POST /sandbox/{id}/snapshot, /sandbox/snapshots and what is below.
 * None of them is public: they belong to their tenant.
 */
#include "dialect/agentuity/snapshots.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_DEFAULT    50
#define LIST_MAX        100
#define LINEAGE_DEFAULT 100
#define LINEAGE_MAX     1000

struct snapshot *agentuity_find_snapshot(const struct http_request *req, const char *ref)
{
	char id[ID_SIZE];
	bool is_id = agentuity_parse_id(ref, "snp_", id);
	struct box *b = server_of(req)->box;
	struct snapshot *s = is_id ? snapshot_find(b, tenant_of(req), id) : NULL;
	return s ? s : snapshot_find(b, tenant_of(req), ref);
}

void agentuity_respond_no_snapshot(struct http_request *req, const char *ref)
{
	char message[320];
	snprintf(message, sizeof message, "snapshot \"%.256s\" not found", ref);
	agentuity_respond_failure(req, 200, "SNAPSHOT_NOT_FOUND", message);
}

static struct snapshot *path_snapshot(struct http_request *req)
{
	const char *ref = http_param(req, "snapshot");
	struct snapshot *s = agentuity_find_snapshot(req, ref);
	if (!s)
		agentuity_respond_no_snapshot(req, ref);
	return s;
}

/* ---- what it looks like ---- */

static void put_owner(struct json_writer *w, const char *tenant)
{
	json_key(w, "user");
	json_begin_object(w);
	json_put_string(w, "id", tenant);
	json_end_object(w);
}

/* What both forms have. One without a name is called by its id. */
static void put_identity(struct json_writer *w, const struct snapshot_view *view)
{
	agentuity_put_id(w, "snapshotId", "snp_", view->id);
	if (view->name[0])
		json_put_string(w, "name", view->name);
	else
		agentuity_put_id(w, "name", "snp_", view->id);
	json_put_string(w, "tag", view->tag[0] ? view->tag : NULL);
	if (view->parent[0])
		agentuity_put_id(w, "parentSnapshotId", "snp_", view->parent);
	json_put_bool(w, "public", false);
	put_owner(w, view->tenant);
	json_put_time(w, "createdAt", view->created_ms);
}

/* A size that is still being counted is -1. */
static void put_snapshot(struct json_writer *w, const struct snapshot_view *view)
{
	char runtime[320];
	json_begin_object(w);
	put_identity(w, view);
	snprintf(runtime, sizeof runtime, "srt_%s", view->template_name);
	json_put_string(w, "runtimeId", runtime);
	json_put_string(w, "description", view->description[0] ? view->description : NULL);
	if (view->metadata[0]) {
		json_key(w, "userMetadata");
		json_raw(w, view->metadata);
	}
	json_put_int(w, "sizeBytes", view->bytes);
	json_put_int(w, "fileCount", view->files);
	json_end_object(w);
}

void agentuity_respond_snapshot(struct http_request *req, int status, const struct snapshot *s)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct snapshot_view view;
	snapshot_view(s, &view);
	agentuity_begin_data(&w);
	put_snapshot(&w, &view);
	agentuity_respond_data(req, status, &w);
}

/* ---- create ---- */

struct create_body {
	const char *name, *tag, *description;
	bool is_public;
};

#define AT(member) offsetof(struct create_body, member)

static const struct json_field create_fields[] = {
	{"name", JSON_STRING, AT(name), 0, 0, 128},
	{"tag", JSON_STRING, AT(tag), 0, 0, 128},
	{"description", JSON_STRING, AT(description), 0, 0, 1024},
	{"public", JSON_BOOL, AT(is_public), 0, 0, 0},
};

static void created(void *arg, struct snapshot *s, int64_t frozen_us, const struct error *e)
{
	struct http_request *req = agentuity_call_end(arg);
	(void)frozen_us;
	if (req && s)
		agentuity_respond_snapshot(req, 201, s);
	else if (req)
		http_respond_error(req, e);
}

static void handle_create(struct http_request *req)
{
	struct error e = {0};
	struct create_body b = {0};
	struct sandbox *s = agentuity_sandbox(req);
	cJSON *body = s ? agentuity_body(req) : NULL;
	if (!body)
		return;
	int r = json_decode_known(body, create_fields, ARRAY_LEN(create_fields), "", &b, &e);
	if (r == 0 && b.is_public)
		r = error_set_field(
			&e, ERROR_NOT_IMPLEMENTED, "public", "this server has no public snapshots");
	const struct snapshot_spec spec = {
		.name = b.name, .tag = b.tag, .description = b.description, .measure = true};
	struct agentuity_call *call = agentuity_call_new(req, s);
	if (r < 0 || snapshot_create(s, &spec, created, call, &e) < 0) {
		agentuity_call_end(call);
		http_respond_error(req, &e);
	}
	cJSON_Delete(body);
}

/* ---- one ---- */

static void handle_get(struct http_request *req)
{
	struct snapshot *s = path_snapshot(req);
	if (s)
		agentuity_respond_snapshot(req, 200, s);
}

static struct agentuity_call *call_of(struct http_request *req, const struct snapshot *s)
{
	struct snapshot_view view;
	struct agentuity_call *call = agentuity_call_new(req, NULL);
	snapshot_view(s, &view);
	memcpy(call->sandbox_id, view.id, ID_SIZE);
	return call;
}

static void retagged(void *arg, const struct error *e)
{
	struct agentuity_call *call = arg;
	char id[ID_SIZE];
	memcpy(id, call->sandbox_id, ID_SIZE);
	struct http_request *req = agentuity_call_end(call);
	struct snapshot *s = req && !e ? agentuity_find_snapshot(req, id) : NULL;
	if (req && e)
		http_respond_error(req, e);
	else if (s)
		agentuity_respond_snapshot(req, 200, s);
	else if (req)
		agentuity_respond_no_snapshot(req, id);
}

static void handle_tag(struct http_request *req)
{
	struct error e = {0};
	struct snapshot *s = path_snapshot(req);
	cJSON *body = s ? agentuity_body(req) : NULL;
	if (!body)
		return;
	const cJSON *tag = cJSON_GetObjectItemCaseSensitive(body, "tag");
	struct agentuity_call *call = call_of(req, s);
	int r = cJSON_IsString(tag) || cJSON_IsNull(tag)
			? 0
			: error_set_field(&e, ERROR_MISSING_FIELD, "tag",
				  "\"tag\" must be a string, or null");
	if (r < 0 || snapshot_retag(s, cJSON_IsNull(tag) ? NULL : tag->valuestring, retagged, call,
			     &e) < 0) {
		agentuity_call_end(call);
		http_respond_error(req, &e);
	}
	cJSON_Delete(body);
}

static void handle_delete(struct http_request *req)
{
	struct error e;
	struct snapshot *s = path_snapshot(req);
	if (!s)
		return;
	struct agentuity_call *call = call_of(req, s);
	if (snapshot_delete(s, agentuity_succeed, call, &e) < 0) {
		agentuity_call_end(call);
		http_respond_error(req, &e);
	}
}

/* ---- many ---- */

static int by_created(const void *a, const void *b)
{
	const struct snapshot_view *x = a, *y = b;
	int r = (x->created_ms > y->created_ms) - (x->created_ms < y->created_ms);
	return r ? r : strcmp(x->id, y->id);
}

static int by_name(const void *a, const void *b)
{
	const struct snapshot_view *x = a, *y = b;
	int r = strcmp(x->name, y->name);
	return r ? r : by_created(a, b);
}

static int by_size(const void *a, const void *b)
{
	const struct snapshot_view *x = a, *y = b;
	int r = (x->bytes > y->bytes) - (x->bytes < y->bytes);
	return r ? r : by_created(a, b);
}

static int by_files(const void *a, const void *b)
{
	const struct snapshot_view *x = a, *y = b;
	int r = (x->files > y->files) - (x->files < y->files);
	return r ? r : by_created(a, b);
}

static const char *const sorts[] = {"created", "name", "size", "files", NULL};
static int (*const orders[])(const void *a, const void *b) = {
	by_created, by_name, by_size, by_files};

static size_t collect(struct http_request *req, struct snapshot_view *views)
{
	char id[ID_SIZE];
	size_t n = 0;
	const char *of = http_query(req, "sandboxId");
	bool filtered = of && of[0];
	if (filtered && !agentuity_parse_id(of, "sbx_", id))
		return 0;
	struct snapshot *s = snapshot_first(server_of(req)->box, tenant_of(req), INT64_MIN, "");
	for (; s && n < SNAPSHOTS_PER_TENANT; s = snapshot_next(s)) {
		snapshot_view(s, &views[n]);
		if (!views[n].deleted && (!filtered || strcmp(views[n].sandbox, id) == 0))
			n++;
	}
	return n;
}

static void handle_list(struct http_request *req)
{
	static const char *const directions[] = {"desc", "asc", NULL};
	struct error e;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	int64_t limit = LIST_DEFAULT, offset = 0;
	int sort, direction;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &limit, &e) < 0 ||
		query_optional_number(req, "offset", 0, INT32_MAX, &offset, &e) < 0 ||
		agentuity_query_word(req, "sort", sorts, &sort, &e) < 0 ||
		agentuity_query_word(req, "direction", directions, &direction, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct snapshot_view *views = http_alloc(req, SNAPSHOTS_PER_TENANT * sizeof *views);
	if (!views)
		abort();
	size_t count = collect(req, views);
	qsort(views, count, sizeof *views, orders[sort]);
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_key(&w, "snapshots");
	json_begin_array(&w);
	for (size_t i = (size_t)offset; i < count && limit > 0; i++, limit--)
		put_snapshot(&w, &views[direction == 0 ? count - 1 - i : i]);
	json_end_array(&w);
	json_put_int(&w, "total", (int64_t)count);
	json_end_object(&w);
	agentuity_respond_data(req, 200, &w);
}

/* ---- lineage ---- */

/* ?snapshot=ID or NAME:TAG, or ?name=&tag=. */
static int lineage_ref(const struct http_request *req, char out[300], struct error *e)
{
	const char *snapshot = http_query(req, "snapshot"), *name = http_query(req, "name");
	const char *tag = http_query(req, "tag");
	if (snapshot && snapshot[0])
		snprintf(out, 300, "%s", snapshot);
	else if (name && name[0])
		snprintf(out, 300, "%s%s%s", name, tag && tag[0] ? ":" : "", tag ? tag : "");
	else
		return error_set_field(
			e, ERROR_MISSING_FIELD, "snapshot", "\"snapshot\" or \"name\" is missing");
	return 0;
}

static void put_ancestor(struct json_writer *w, const struct snapshot *s)
{
	struct snapshot_view view;
	snapshot_view(s, &view);
	json_begin_object(w);
	put_identity(w, &view);
	json_put_bool(w, "deleted", view.deleted);
	json_end_object(w);
}

static void handle_lineage(struct http_request *req)
{
	struct error e;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	char ref[300];
	int64_t limit = LINEAGE_DEFAULT, total = 0;
	if (query_optional_number(req, "limit", 1, LINEAGE_MAX, &limit, &e) < 0 ||
		lineage_ref(req, ref, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct snapshot *s = agentuity_find_snapshot(req, ref);
	if (!s) {
		agentuity_respond_no_snapshot(req, ref);
		return;
	}
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_key(&w, "lineage");
	json_begin_array(&w);
	for (; s; s = snapshot_parent(s))
		if (total++ < limit)
			put_ancestor(&w, s);
	json_end_array(&w);
	json_put_int(&w, "total", total);
	json_end_object(&w);
	agentuity_respond_data(req, 200, &w);
}

/* There are none, and none can be made. */
static void handle_list_public(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_key(&w, "snapshots");
	json_begin_array(&w);
	json_end_array(&w);
	json_put_int(&w, "total", 0);
	json_end_object(&w);
	agentuity_respond_data(req, 200, &w);
}

static void handle_get_public(struct http_request *req)
{
	agentuity_respond_no_snapshot(req, http_param(req, "snapshot"));
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/snapshot", handle_create, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots", handle_list, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/lineage", handle_lineage, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/public", handle_list_public, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/public/{snapshot}", handle_get_public, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/{snapshot}", handle_get, AGENTUITY_BODY_LIMIT},
	{HTTP_PATCH, "/snapshots/{snapshot}", handle_tag, AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/snapshots/{snapshot}", handle_delete, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_snapshot_table = ROUTE_TABLE(routes);
