/*
 * Snapshots and forks. To E2B's clients a snapshot is a template with the tag "default": its id is
 * "<name>:default", or "<id>:default" without a name, and sandboxes are created from it by that.
 *
 * Both copy the disk. Processes of the original go on in the original only.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/disk/snapshot.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/encode.h"
#include "dialect/e2b/templates.h"

#define PAGE_MAX 100

/* ---- answers ---- */

static void put_reference(struct buf *out, const struct snapshot_view *view)
{
	buf_append_str(out, view->name[0] ? view->name : view->id);
	buf_append_char(out, ':');
	buf_append_str(
		out, view->name[0] && view->tag[0] ? e2b_tag_out(view->tag) : E2B_DEFAULT_TAG);
	buf_append_char(out, '\0');
}

static void put_snapshot(struct json_writer *w, const struct snapshot *s)
{
	struct snapshot_view view;
	autobuf reference = {0};
	snapshot_view(s, &view);
	/* One that has lost its name to a newer one is found by its id. */
	bool named = view.name[0] && view.tag[0];
	if (!named)
		view.name = "";
	put_reference(&reference, &view);
	json_begin_object(w);
	json_put_string(w, "snapshotID", reference.failed ? view.id : reference.data);
	json_key(w, "names");
	json_begin_array(w);
	if (named && !reference.failed)
		json_string(w, reference.data);
	json_end_array(w);
	json_end_object(w);
}

/* ---- create ---- */

struct snapshot_body {
	const char *name;
};

static const struct json_field snapshot_fields[] = {
	{"name", JSON_STRING, offsetof(struct snapshot_body, name), 0, 0, TEMPLATE_REF_MAX},
};

struct snapshot_call {
	struct http_request *req; /* NULL once the client has gone; the snapshot stays */
};

static void snapshot_aborted(void *arg)
{
	((struct snapshot_call *)arg)->req = NULL;
}

static void snapshot_created(
	void *arg, struct snapshot *s, int64_t frozen_us, const struct error *e)
{
	struct snapshot_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	(void)frozen_us;
	if (call->req && !s) {
		http_respond_error(call->req, e);
	} else if (call->req) {
		put_snapshot(&w, s);
		e2b_respond_json(call->req, 201, &body);
	}
	free(call);
}

static int create(struct http_request *req, struct sandbox *s, const cJSON *body, struct error *e)
{
	struct snapshot_body fields = {0};
	struct snapshot_spec spec = {0};
	char name[TEMPLATE_NAME_MAX + 1] = "", tag[TEMPLATE_TAG_MAX + 1] = "";
	if (json_decode_known(body, snapshot_fields, ARRAY_LEN(snapshot_fields), "", &fields, e) <
			0 ||
		(fields.name && fields.name[0] && template_split(fields.name, name, tag, e) < 0))
		return -1;
	spec.name = name;
	spec.tag = tag[0] ? e2b_tag_in(tag) : NULL;
	struct snapshot_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	int r = snapshot_create(s, &spec, snapshot_created, call, e);
	if (r < 0)
		free(call);
	else
		http_on_abort(req, snapshot_aborted, call);
	return r;
}

static void handle_create(struct http_request *req)
{
	struct error e = {0};
	struct sandbox *s = e2b_sandbox(req);
	cJSON *body = s ? e2b_body(req) : NULL;
	if (!body)
		return;
	if (create(req, s, body, &e) < 0)
		http_respond_error(req, &e);
	cJSON_Delete(body);
}

/* ---- list ---- */

struct list_query {
	const char *sandbox, *name;
	int64_t limit, after_ms;
	char after_id[ID_SIZE];
};

static int parse_query(const struct http_request *req, struct list_query *q, struct error *e)
{
	const char *token = http_query(req, "nextToken");
	*q = (struct list_query){.sandbox = http_query(req, "sandboxID"),
		.name = http_query(req, "name"),
		.limit = PAGE_MAX,
		.after_ms = INT64_MIN};
	if (token && token[0] && !cursor_parse(token, &q->after_ms, q->after_id))
		return error_set_field(e, ERROR_INVALID_FIELD, "nextToken",
			"\"nextToken\" must be what an earlier answer had in X-Next-Token");
	return query_optional_number(req, "limit", 1, PAGE_MAX, &q->limit, e);
}

/* "name" or "name:tag" */
static bool has_name(const struct snapshot_view *view, const char *wanted)
{
	size_t len = strcspn(wanted, ":");
	if (strncmp(view->name, wanted, len) != 0 || view->name[len])
		return false;
	return !wanted[len] || strcmp(e2b_tag_in(wanted + len + 1), view->tag) == 0;
}

static bool matches(const struct snapshot_view *view, const struct list_query *q)
{
	return !view->deleted &&
	       (!q->sandbox || !q->sandbox[0] ||
		       strncmp(view->sandbox, q->sandbox, strcspn(q->sandbox, "-")) == 0) &&
	       (!q->name || !q->name[0] || has_name(view, q->name));
}

static void handle_list(struct http_request *req)
{
	struct error e;
	struct list_query q;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct snapshot_view view, last = {0};
	char token[CURSOR_SIZE];
	if (parse_query(req, &q, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	json_begin_array(&w);
	struct snapshot *s =
		snapshot_first(server_of(req)->box, tenant_of(req), q.after_ms, q.after_id);
	for (; s; s = snapshot_next(s)) {
		snapshot_view(s, &view);
		if (!matches(&view, &q))
			continue;
		if (q.limit-- == 0)
			break;
		put_snapshot(&w, s);
		last = view;
	}
	json_end_array(&w);
	if (s) {
		cursor_format(last.created_ms, last.id, token);
		http_add_header(req, "X-Next-Token", token);
	}
	e2b_respond_json(req, 200, &body);
}

/* ---- fork ---- */

struct fork_body {
	int64_t timeout_s, count;
};

static const struct json_field fork_fields[] = {
	{"timeout", JSON_INTEGER, offsetof(struct fork_body, timeout_s), 0, 0, 0},
	{"count", JSON_INTEGER, offsetof(struct fork_body, count), 0, 1, FORKS_MAX},
};

struct fork_call {
	struct http_request *req; /* NULL once the client has gone */
	struct box *box;
	const char *tenant;
	int64_t lease_ms;
	char ids[FORKS_MAX][ID_SIZE];
	size_t count;
	unsigned waiting;
};

static void fork_aborted(void *arg)
{
	((struct fork_call *)arg)->req = NULL;
}

static void put_fork(struct json_writer *w, const struct server *d, struct sandbox *s)
{
	struct sandbox_view view;
	json_begin_object(w);
	if (s) {
		sandbox_view(s, &view);
		json_key(w, "sandbox");
		e2b_put_sandbox(w, d, &view);
	} else {
		json_key(w, "error");
		json_begin_object(w);
		json_put_int(w, "code", 500);
		json_put_string(w, "message", "the fork ended before it was of use");
		json_end_object(w);
	}
	json_end_object(w);
}

static void fork_answer(struct fork_call *call)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_array(&w);
	for (size_t i = 0; i < call->count; i++)
		put_fork(&w, server_of(call->req),
			sandbox_find(call->box, call->tenant, call->ids[i]));
	json_end_array(&w);
	e2b_respond_json(call->req, 201, &body);
}

static void lease_set(void *arg, const struct error *e)
{
	struct fork_call *call = arg;
	(void)e; /* it is gone: put_fork says so */
	if (--call->waiting > 0)
		return;
	if (call->req)
		fork_answer(call);
	free(call);
}

/* Each has a lease of its own from now on. */
static void set_leases(struct fork_call *call)
{
	struct error e;
	struct sandbox_change change = {.settings = {.lease_ms = call->lease_ms}};
	sandbox_change_gives(&change, lease_ms);
	call->waiting = 1;
	for (size_t i = 0; i < call->count; i++) {
		struct sandbox *s = sandbox_find(call->box, call->tenant, call->ids[i]);
		if (s && sandbox_update(s, &change, lease_set, call, &e) == 0)
			call->waiting++;
	}
	lease_set(call, NULL);
}

static void sandbox_forked(void *arg, const struct fork_result *result, const struct error *e)
{
	struct fork_call *call = arg;
	struct sandbox_view view;
	if (!result) {
		if (call->req)
			http_respond_error(call->req, e);
		free(call);
		return;
	}
	for (size_t i = 0; i < result->count && i < FORKS_MAX; i++) {
		sandbox_view(result->sandboxes[i], &view);
		memcpy(call->ids[call->count++], view.id, ID_SIZE);
	}
	set_leases(call);
}

static int fork_sandbox(
	struct http_request *req, struct sandbox *s, const cJSON *body, struct error *e)
{
	struct fork_body fields = {.timeout_s = E2B_TIMEOUT_V1_S, .count = 1};
	if (json_decode_known(body, fork_fields, ARRAY_LEN(fork_fields), "", &fields, e) < 0 ||
		e2b_check_timeout(fields.timeout_s, e) < 0)
		return -1;
	struct fork_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->box = server_of(req)->box;
	call->tenant = tenant_of(req);
	call->lease_ms = fields.timeout_s * 1000;
	int r = sandbox_fork(s, (unsigned)fields.count, sandbox_forked, call, e);
	if (r < 0)
		free(call);
	else
		http_on_abort(req, fork_aborted, call);
	return r;
}

static void handle_fork(struct http_request *req)
{
	struct error e = {0};
	struct sandbox *s = e2b_sandbox(req);
	cJSON *body = s ? e2b_body(req) : NULL;
	if (!body)
		return;
	if (fork_sandbox(req, s, body, &e) < 0)
		http_respond_error(req, &e);
	cJSON_Delete(body);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes/{id}/snapshots", handle_create, E2B_BODY_LIMIT},
	{HTTP_GET, "/snapshots", handle_list, 0},
	{HTTP_POST, "/sandboxes/{id}/fork", handle_fork, E2B_BODY_LIMIT},
};

const struct route_table e2b_snapshot_table = ROUTE_TABLE(routes);
