/* /v1/sandboxes: create, list, get, delete. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/encode.h"
#include "api/routes.h"
#include "base/cleanup.h"

#define LIST_LIMIT_DEFAULT 100
#define LIST_LIMIT_MAX     1000

void api_respond_sandbox(struct http_request *req, int status, const struct sandbox *s)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	sandbox_view(s, &view);
	encode_sandbox(&w, &view);
	api_respond_json(req, status, &body);
}

/* ---- create ---- */

struct create_call {
	struct http_request *req; /* NULL once the client has gone */
};

static void create_aborted(void *arg)
{
	struct create_call *call = arg;
	call->req = NULL;
}

static void create_done(void *arg, struct sandbox *s, const struct error *e)
{
	struct create_call *call = arg;
	if (!call->req) {
		/* Nobody has its id. */
		if (s)
			sandbox_destroy(s, NULL, NULL);
	} else if (s) {
		api_respond_sandbox(call->req, 201, s);
	} else {
		http_respond_error(call->req, e);
	}
	free(call);
}

static void handle_create_sandbox(struct http_request *req)
{
	struct error e = {0};
	struct scratch memory = {0};
	struct sandbox_spec spec = {.tenant = api_tenant(req)};
	cJSON *body = api_body(req);
	if (!body)
		return;
	struct create_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	if (decode_create(body, &memory, &spec, &e) < 0 ||
		sandbox_create(api_box(req), &spec, create_done, call, &e) < 0) {
		free(call);
		http_respond_error(req, &e);
	} else {
		http_on_abort(req, create_aborted, call);
	}
	scratch_finish(&memory);
	cJSON_Delete(body);
}

/* ---- get, delete ---- */

struct get_call {
	struct http_request *req;
	bool include_deleted;
};

static void get_aborted(void *arg)
{
	((struct get_call *)arg)->req = NULL;
}

/* One that ended by itself is shown for as long as it is known; a deleted one only on request. */
static void ended_loaded(void *arg, const struct sandbox_view *view)
{
	struct get_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct error e;
	if (!call->req) {
		free(call);
		return;
	}
	if (view && (call->include_deleted || view->status != SANDBOX_DELETED)) {
		encode_sandbox(&w, view);
		api_respond_json(call->req, 200, &body);
	} else {
		error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
		http_respond_error(call->req, &e);
	}
	free(call);
}

static void handle_get_sandbox(struct http_request *req)
{
	struct error e;
	bool include_deleted = false;
	if (api_query_bool(req, "includeDeleted", &include_deleted, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	const char *id = http_param(req, "id");
	struct sandbox *s = sandbox_find(api_box(req), api_tenant(req), id);
	if (s) {
		api_respond_sandbox(req, 200, s);
		return;
	}
	struct get_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->include_deleted = include_deleted;
	http_on_abort(req, get_aborted, call);
	sandbox_load_ended(api_box(req), api_tenant(req), id, ended_loaded, call);
}

struct delete_call {
	struct http_request *req;
};

static void delete_aborted(void *arg)
{
	((struct delete_call *)arg)->req = NULL;
}

static void delete_done(void *arg)
{
	struct delete_call *call = arg;
	struct buf nothing = {0};
	if (call->req)
		http_respond(call->req, 204, NULL, &nothing);
	free(call);
}

static void handle_delete_sandbox(struct http_request *req)
{
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	struct delete_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	http_on_abort(req, delete_aborted, call);
	sandbox_destroy(s, delete_done, call);
}

/* ---- list ---- */

struct list_query {
	const char *status, *project, *name;
	int64_t limit;
	int64_t after_ms;
	char after_id[ID_SIZE];
};

static int parse_limit(const char *text, int64_t *ret, struct error *e)
{
	char *end;
	*ret = LIST_LIMIT_DEFAULT;
	if (!text)
		return 0;
	long value = strtol(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || value < 1 || value > LIST_LIMIT_MAX)
		return error_set_field(e, ERROR_INVALID_FIELD, "limit",
			"\"limit\" must be a number from 1 to %d", LIST_LIMIT_MAX);
	*ret = value;
	return 0;
}

static int check_status(const char *status, struct error *e)
{
	for (int i = 0; status && i < SANDBOX_STATUS_COUNT; i++)
		if (strcmp(status, sandbox_status_name((enum sandbox_status)i)) == 0)
			return 0;
	if (!status)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "status", "there is no status '%.32s'", status);
}

/* A cursor is the place of the last sandbox that was listed: its time, '-', its id. */
static int parse_cursor(const char *text, struct list_query *q, struct error *e)
{
	char *end;
	q->after_ms = -1;
	if (!text)
		return 0;
	q->after_ms = strtoll(text, &end, 10);
	if (*text < '0' || *text > '9' || *end != '-' || !id_is_valid(end + 1))
		return error_set_field(e, ERROR_INVALID_FIELD, "cursor",
			"\"cursor\" must be what an earlier answer gave as nextCursor");
	memcpy(q->after_id, end + 1, ID_SIZE);
	return 0;
}

static int parse_query(struct http_request *req, struct list_query *q, struct error *e)
{
	static const char *const known[] = {"status", "project", "name", "limit", "cursor"};
	const char *name, *value;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		bool is_known = strncmp(name, "metadata.", 9) == 0;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			is_known |= strcmp(name, known[k]) == 0;
		if (!is_known)
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "there is no filter '%.64s'", name);
	}
	q->status = http_query(req, "status");
	q->project = http_query(req, "project");
	q->name = http_query(req, "name");
	if (check_status(q->status, e) < 0 ||
		parse_limit(http_query(req, "limit"), &q->limit, e) < 0)
		return -1;
	return parse_cursor(http_query(req, "cursor"), q, e);
}

/* metadata.KEY=VALUE: strings as they are, anything else as JSON. */
static bool metadata_is(const cJSON *metadata, const char *key, const char *wanted)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(metadata, key);
	if (!item)
		return false;
	if (cJSON_IsString(item))
		return strcmp(item->valuestring, wanted) == 0;
	autofree char *text = cJSON_PrintUnformatted(item);
	return text && strcmp(text, wanted) == 0;
}

static bool metadata_matches(struct http_request *req, const char *json)
{
	const char *name, *value;
	bool matches = true;
	cJSON *metadata = NULL;
	for (size_t i = 0; matches && http_query_at(req, i, &name, &value); i++) {
		if (strncmp(name, "metadata.", 9) != 0)
			continue;
		metadata = metadata ? metadata : cJSON_Parse(json);
		matches = metadata_is(metadata, name + 9, value);
	}
	cJSON_Delete(metadata);
	return matches;
}

static bool matches_query(
	struct http_request *req, const struct list_query *q, const struct sandbox_view *view)
{
	return (!q->status || strcmp(q->status, sandbox_status_name(view->status)) == 0) &&
	       (!q->project || strcmp(q->project, view->project) == 0) &&
	       (!q->name || strcmp(q->name, view->name) == 0) &&
	       metadata_matches(req, view->metadata);
}

static void put_cursor(struct json_writer *w, const struct sandbox_view *last)
{
	char cursor[64];
	snprintf(cursor, sizeof cursor, "%lld-%s", (long long)last->created_ms, last->id);
	json_put_string(w, "nextCursor", cursor);
}

static void handle_list_sandboxes(struct http_request *req)
{
	struct error e;
	struct list_query q = {0};
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view, last = {0};
	if (parse_query(req, &q, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	json_begin_object(&w);
	json_key(&w, "sandboxes");
	json_begin_array(&w);
	struct sandbox *s = sandbox_first(api_box(req), api_tenant(req), q.after_ms, q.after_id);
	for (; s; s = sandbox_next(s)) {
		sandbox_view(s, &view);
		if (!matches_query(req, &q, &view))
			continue;
		if (q.limit-- == 0)
			break;
		encode_sandbox(&w, &view);
		last = view;
	}
	json_end_array(&w);
	if (s)
		put_cursor(&w, &last);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static const struct http_route sandbox_routes[] = {
	{HTTP_POST, "/v1/sandboxes", handle_create_sandbox, BODY_LIMIT},
	{HTTP_GET, "/v1/sandboxes", handle_list_sandboxes, 0},
	{HTTP_GET, "/v1/sandboxes/{id}", handle_get_sandbox, 0},
	{HTTP_DELETE, "/v1/sandboxes/{id}", handle_delete_sandbox, 0},
};

const struct api_table sandbox_table = API_TABLE(sandbox_routes);
