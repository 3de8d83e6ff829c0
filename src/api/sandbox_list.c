/*
 * GET /v1/sandboxes: a page in the order of creation, from memory; or, with a status that is an
 * end, from the store.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/encode.h"
#include "api/lookup.h"
#include "api/routes.h"

#define LIST_LIMIT_DEFAULT 100
#define LIST_LIMIT_MAX     1000

struct list_query {
	const char *status, *project, *name;
	int64_t limit;
	int64_t after_ms;
	char after_id[ID_SIZE];
	bool ended; /* those that have, by their status */
};

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

static int parse_query(const struct http_request *req, struct list_query *q, struct error *e)
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
	const char *cursor = http_query(req, "cursor");
	q->status = http_query(req, "status");
	q->project = http_query(req, "project");
	q->name = http_query(req, "name");
	q->ended = q->status &&
		   (strcmp(q->status, "terminated") == 0 || strcmp(q->status, "deleted") == 0);
	q->limit = LIST_LIMIT_DEFAULT;
	q->after_ms = -1;
	if (check_status(q->status, e) < 0 ||
		query_number(req, "limit", 1, LIST_LIMIT_MAX, &q->limit, e) < 0)
		return -1;
	if (cursor && !cursor_parse(cursor, &q->after_ms, q->after_id))
		return error_set_field(e, ERROR_INVALID_FIELD, "cursor",
			"\"cursor\" must be what an earlier answer gave as nextCursor");
	return 0;
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

static bool metadata_matches(const struct http_request *req, const char *json)
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
	const struct http_request *req, const struct list_query *q, const struct sandbox_view *view)
{
	return (!q->status || strcmp(q->status, sandbox_status_name(view->status)) == 0) &&
	       (!q->project || strcmp(q->project, view->project) == 0) &&
	       (!q->name || strcmp(q->name, view->name) == 0) &&
	       metadata_matches(req, view->metadata);
}

/* ---- the answer ---- */

struct list_call {
	struct http_request *req; /* NULL once the client has gone */
	struct box *box;
	struct list_query query;
	struct buf body;
	struct json_writer w;
	int64_t left;
	int64_t last_ms; /* the place of the last one that is in the answer */
	char last_id[ID_SIZE];
	int64_t seen_ms; /* and of the last one that was looked at */
	char seen_id[ID_SIZE];
	unsigned seen;
	bool more;
};

static struct list_call *list_begin(struct http_request *req, const struct list_query *q)
{
	struct list_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->box = server_of(req)->box;
	call->query = *q;
	call->left = q->limit;
	call->w.out = &call->body;
	json_begin_object(&call->w);
	json_key(&call->w, "sandboxes");
	json_begin_array(&call->w);
	return call;
}

static void list_end(struct list_call *call)
{
	json_end_array(&call->w);
	if (call->more)
		api_put_cursor(&call->w, call->last_ms, call->last_id);
	json_end_object(&call->w);
	if (call->req)
		api_respond_json(call->req, 200, &call->body);
	buf_finish(&call->body);
	free(call);
}

/* false: the page is full, and this one is more. */
static bool list_add(struct list_call *call, const struct sandbox_view *view)
{
	if (!matches_query(call->req, &call->query, view))
		return true;
	call->more = call->left == 0;
	if (call->more)
		return false;
	call->left--;
	call->last_ms = view->created_ms;
	memcpy(call->last_id, view->id, ID_SIZE);
	encode_sandbox(&call->w, view);
	return true;
}

static void list_living(struct list_call *call)
{
	struct sandbox_view view;
	const struct list_query *q = &call->query;
	struct sandbox *s =
		sandbox_first(call->box, tenant_of(call->req), q->after_ms, q->after_id);
	for (; s; s = sandbox_next(s)) {
		sandbox_view(s, &view);
		if (!list_add(call, &view))
			break;
	}
	list_end(call);
}

/* ---- those that have ended ---- */

static void list_ended(struct list_call *call);

static void list_aborted(void *arg)
{
	((struct list_call *)arg)->req = NULL;
}

/* What the store cannot look into, the metadata, may leave a page short: then the next one. */
static void ended_listed(void *arg, const struct sandbox_view *view, int64_t total)
{
	struct list_call *call = arg;
	(void)total;
	if (view) {
		call->seen++;
		call->seen_ms = view->created_ms;
		memcpy(call->seen_id, view->id, ID_SIZE);
		if (call->req && !call->more)
			list_add(call, view);
	} else if (call->req && !call->more && call->seen > call->query.limit) {
		call->query.after_ms = call->seen_ms;
		memcpy(call->query.after_id, call->seen_id, ID_SIZE);
		list_ended(call);
	} else {
		list_end(call);
	}
}

static void list_ended(struct list_call *call)
{
	const struct list_query *q = &call->query;
	const struct sandbox_filter filter = {
		.tenant = tenant_of(call->req),
		.status = q->status,
		.name = q->name,
		.project = q->project,
		.ephemeral = -1,
		.after_ms = q->after_ms,
		.after_id = q->after_ms < 0 ? NULL : q->after_id,
		.limit = (unsigned)q->limit + 1,
	};
	call->seen = 0;
	sandbox_list_ended(call->box, &filter, ended_listed, call);
}

static void handle_list_sandboxes(struct http_request *req)
{
	struct error e;
	struct list_query q = {0};
	if (parse_query(req, &q, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct list_call *call = list_begin(req, &q);
	if (!q.ended) {
		list_living(call);
		return;
	}
	http_on_abort(req, list_aborted, call);
	list_ended(call);
}

static const struct http_route list_routes[] = {
	{HTTP_GET, "/v1/sandboxes", handle_list_sandboxes, 0},
};

const struct route_table sandbox_list_table = ROUTE_TABLE(list_routes);
