/*
 * GET /sandbox. Pages are by offset, as Agentuity has them, so the whole list is sorted for each
 * page; a tenant has a few hundred sandboxes at most. Those that have ended are listed when they
 * are asked for, by their status; of those there may be many, and the store sorts them.
 */
#include "dialect/agentuity/list.h"

#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/encode.h"

#define LIST_DEFAULT 50
#define LIST_MAX     100

/* In the order of enum sandbox_order. */
static const char *const sorts[] = {
	"created", "updated", "name", "status", "mode", "execution_count", NULL};
static const char *const directions[] = {"desc", "asc", NULL};
static const char *const modes[] = {"", "oneshot", "interactive", NULL};
static const char *const statuses[] = {"", "creating", "idle", "running", "paused", "stopping",
	"suspended", "failed", "terminated", "deleted", NULL};

#define FIRST_ENDED 8 /* among the statuses */
#define DELETED     9

struct query {
	int sort, direction, mode, status;
	int64_t limit, offset;
};

static int parse_query(struct http_request *req, struct query *q, struct error *e)
{
	const char *deleted = http_query(req, "deletedOnly");
	*q = (struct query){.limit = LIST_DEFAULT};
	if (query_optional_number(req, "limit", 1, LIST_MAX, &q->limit, e) < 0 ||
		query_optional_number(req, "offset", 0, INT32_MAX, &q->offset, e) < 0 ||
		agentuity_query_word(req, "sort", sorts, &q->sort, e) < 0 ||
		agentuity_query_word(req, "direction", directions, &q->direction, e) < 0 ||
		agentuity_query_word(req, "mode", modes, &q->mode, e) < 0 ||
		agentuity_query_word(req, "status", statuses, &q->status, e) < 0)
		return -1;
	if (!deleted || strcmp(deleted, "true") != 0)
		return 0;
	if (q->status != 0 && q->status != DELETED)
		return error_set_field(e, ERROR_INVALID_FIELD, "deletedOnly",
			"\"deletedOnly\" cannot be beside another \"status\"");
	q->status = DELETED;
	return 0;
}

static const char *mode_of(const struct sandbox_view *view)
{
	return view->ephemeral ? "oneshot" : "interactive";
}

static const char *query_snapshot(const struct http_request *req)
{
	const char *snapshot = http_query(req, "snapshotId");
	return snapshot && strncmp(snapshot, "snp_", 4) == 0 ? snapshot + 4 : snapshot;
}

static bool is_wanted(
	const struct http_request *req, const struct query *q, const struct sandbox_view *view)
{
	const char *name = http_query(req, "name"), *project = http_query(req, "projectId");
	const char *snapshot = query_snapshot(req);
	return (!snapshot || !snapshot[0] || strcmp(snapshot, view->snapshot) == 0) &&
	       (!name || !name[0] || strcmp(name, view->name) == 0) &&
	       (!project || !project[0] || strcmp(project, view->project) == 0) &&
	       (q->mode == 0 || strcmp(modes[q->mode], mode_of(view)) == 0) &&
	       (q->status == 0 || strcmp(statuses[q->status], agentuity_status(view)) == 0);
}

/* ---- order ---- */

static int compare_numbers(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int by_created(const void *a, const void *b)
{
	const struct sandbox_view *x = a, *y = b;
	int r = compare_numbers(x->created_ms, y->created_ms);
	return r ? r : strcmp(x->id, y->id);
}

static int by_updated(const void *a, const void *b)
{
	const struct sandbox_view *x = a, *y = b;
	int r = compare_numbers(x->last_active_ms, y->last_active_ms);
	return r ? r : by_created(a, b);
}

static int by_name(const void *a, const void *b)
{
	const struct sandbox_view *x = a, *y = b;
	int r = strcmp(x->name, y->name);
	return r ? r : by_created(a, b);
}

static int by_status(const void *a, const void *b)
{
	int r = strcmp(agentuity_status(a), agentuity_status(b));
	return r ? r : by_created(a, b);
}

static int by_mode(const void *a, const void *b)
{
	int r = strcmp(mode_of(a), mode_of(b));
	return r ? r : by_created(a, b);
}

static int by_executions(const void *a, const void *b)
{
	const struct sandbox_view *x = a, *y = b;
	int r = compare_numbers((int64_t)x->executions, (int64_t)y->executions);
	return r ? r : by_created(a, b);
}

static int (*const orders[])(const void *a, const void *b) = {
	[SANDBOX_ORDER_CREATION] = by_created,
	[SANDBOX_ORDER_ACTIVITY] = by_updated,
	[SANDBOX_ORDER_NAME] = by_name,
	[SANDBOX_ORDER_STATUS] = by_status,
	[SANDBOX_ORDER_EPHEMERAL] = by_mode,
	[SANDBOX_ORDER_EXECUTIONS] = by_executions,
};

/* ---- the answer ---- */

static struct sandbox_view *collect(struct http_request *req, const struct query *q, size_t *count)
{
	size_t room = 0;
	struct sandbox_view *views = NULL, view;
	*count = 0;
	struct sandbox *s = sandbox_first(server_of(req)->box, tenant_of(req), INT64_MIN, "");
	for (; s; s = sandbox_next(s)) {
		sandbox_view(s, &view);
		if (!is_wanted(req, q, &view))
			continue;
		if (*count == room) {
			room = room ? room * 2 : 64;
			views = realloc(views, room * sizeof *views);
			if (!views)
				abort();
		}
		views[(*count)++] = view;
	}
	if (*count)
		qsort(views, *count, sizeof *views, orders[q->sort]);
	return views;
}

static void begin_list(struct json_writer *w)
{
	agentuity_begin_data(w);
	json_begin_object(w);
	json_key(w, "sandboxes");
	json_begin_array(w);
}

static void end_list(struct http_request *req, struct json_writer *w, int64_t total)
{
	json_end_array(w);
	json_put_int(w, "total", total);
	json_end_object(w);
	agentuity_respond_data(req, 200, w);
}

static void list_living(struct http_request *req, const struct query *q, agentuity_put_fn *put)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	size_t count;
	int64_t left = q->limit;
	struct sandbox_view *views = collect(req, q, &count);
	begin_list(&w);
	for (size_t i = (size_t)q->offset; i < count && left > 0; i++, left--)
		put(&w, &views[q->direction == 0 ? count - 1 - i : i]);
	free(views);
	end_list(req, &w, (int64_t)count);
}

/* ---- those that have ended ---- */

struct ended_call {
	struct http_request *req; /* NULL once the client has gone */
	agentuity_put_fn *put;
	struct buf body;
	struct json_writer w;
};

static void ended_aborted(void *arg)
{
	((struct ended_call *)arg)->req = NULL;
}

static void ended_listed(void *arg, const struct sandbox_view *view, int64_t total)
{
	struct ended_call *call = arg;
	if (view) {
		call->put(&call->w, view);
		return;
	}
	if (call->req)
		end_list(call->req, &call->w, total);
	buf_finish(&call->body);
	free(call);
}

static void list_ended(struct http_request *req, const struct query *q, agentuity_put_fn *put)
{
	struct ended_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->put = put;
	call->w.out = &call->body;
	begin_list(&call->w);
	http_on_abort(req, ended_aborted, call);
	const struct sandbox_filter filter = {
		.tenant = tenant_of(req),
		.status = statuses[q->status],
		.name = http_query(req, "name"),
		.project = http_query(req, "projectId"),
		.snapshot = query_snapshot(req),
		.ephemeral = q->mode == 0 ? -1 : q->mode == 1,
		.order = (enum sandbox_order)q->sort,
		.backwards = q->direction == 0,
		.offset = q->offset,
		.limit = (unsigned)q->limit,
	};
	sandbox_list_ended(server_of(req)->box, &filter, ended_listed, call);
}

void agentuity_list_sandboxes(struct http_request *req, agentuity_put_fn *put)
{
	struct error e;
	struct query q;
	if (parse_query(req, &q, &e) < 0)
		http_respond_error(req, &e);
	else if (q.status >= FIRST_ENDED)
		list_ended(req, &q, put);
	else
		list_living(req, &q, put);
}

static void handle_list(struct http_request *req)
{
	agentuity_list_sandboxes(req, agentuity_put_sandbox);
}

static const struct http_route routes[] = {
	{HTTP_GET, "", handle_list, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_list_table = ROUTE_TABLE(routes);
