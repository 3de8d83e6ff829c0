/*
 * Snapshots and forks. To E2B's clients a snapshot is a template with the tag "default": its id is
 * "<name>:default", or "<id>:default" without a name, and sandboxes are created from it by that.
 *
 * Both copy the disk. Processes of the original go on in the original only.
 */
#include "op/snapshots.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "answer/destination.h"
#include "answer/json_body.h"
#include "answer/query.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/aliases.h"
#include "dialect/e2b/templates.h"

#define PAGE_MAX 100

/* An answer about a sandbox that E2B's clients can see: one that has failed is gone to them. */
static struct answer *e2b_snapshots_snapshot_answer(
	struct http_request *req, const struct answer_form *form)
{
	struct answer *a = e2b_answer(req, form);
	a->call.wants_usable = true;
	return a;
}

/* ---- create ---- */

struct snapshot_body {
	const char *name;
};

static const struct json_field snapshot_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct snapshot_body, name), 0, 0, TEMPLATE_REF_MAX},
};

static void e2b_snapshots_handle_create_snapshot(struct http_request *req)
{
	static const struct answer_records records = {.aliases = &e2b_snapshot};
	static const struct answer_form form = {E2B_RECORD(&records), .fail = e2b_fail};
	struct error e = {0};
	struct snapshot_body fields = {0};
	char name[TEMPLATE_NAME_MAX + 1] = "", tag[TEMPLATE_TAG_MAX + 1] = "";
	struct answer *a = e2b_snapshots_snapshot_answer(req, &form);
	const cJSON *body = answer_json(a, &e);
	if (!body ||
		json_decode_known(
			body, snapshot_fields, ARRAY_LEN(snapshot_fields), "", &fields, &e) < 0 ||
		(fields.name && fields.name[0] && template_split(fields.name, name, tag, &e) < 0)) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_snapshot_create(&a->call,
		&(struct snapshot_spec){.name = name, .tag = tag[0] ? e2b_tag_in(tag) : NULL});
	answer_run(a);
}

/* ---- list ---- */

/* "name" or "name:tag" */
static int snapshot_list_name(
	struct http_request *req, struct snapshot_filter *ret, struct error *e)
{
	const char *wanted = http_query(req, "name");
	if (!wanted || !wanted[0])
		return 0;
	size_t len = strcspn(wanted, ":");
	char *name = http_alloc(req, len + 1);
	if (!name)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	memcpy(name, wanted, len);
	name[len] = '\0';
	ret->name = name;
	ret->tag = wanted[len] ? e2b_tag_in(wanted + len + 1) : NULL;
	return 0;
}

/* What is no sandbox's name matches none. */
static int snapshot_list_sandbox(
	struct http_request *req, struct snapshot_filter *ret, struct error *e)
{
	const char *wanted = http_query(req, "sandboxID");
	if (!wanted || !wanted[0])
		return 0;
	char *id = http_alloc(req, ID_SIZE);
	if (!id)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory");
	ret->sandbox = destination_parse_id(wanted, id) ? id : wanted;
	return 0;
}

static int e2b_snapshots_snapshot_list_parse(
	struct http_request *req, struct snapshot_filter *ret, struct error *e)
{
	const char *token = http_query(req, "nextToken");
	*ret = (struct snapshot_filter){.limit = PAGE_MAX};
	if (token && token[0] && !cursor_parse(token, &ret->after_ms, ret->after_id))
		return error_set_field(e, ERROR_INVALID_FIELD, "nextToken",
			"\"nextToken\" must be what an earlier answer had in X-Next-Token");
	if (snapshot_list_name(req, ret, e) < 0 || snapshot_list_sandbox(req, ret, e) < 0)
		return -1;
	return query_optional_number(req, "limit", 1, PAGE_MAX, &ret->limit, e);
}

static void e2b_snapshots_handle_list_snapshots(struct http_request *req)
{
	static const struct answer_records records = {
		.aliases = &e2b_snapshot, .rest = e2b_put_next, .place = snapshot_place};
	static const struct answer_form form = {E2B_LIST(&records)};
	struct error e = {0};
	struct snapshot_filter filter;
	struct answer *a = answer_new(req, &form);
	if (e2b_snapshots_snapshot_list_parse(req, &filter, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_snapshot_list(&a->call, &filter);
	answer_run(a);
}

/* ---- fork ---- */

struct fork_body {
	int64_t timeout_s, count;
};

static const struct json_field fork_fields[] = {
	{"timeout", FIELD_INTEGER, offsetof(struct fork_body, timeout_s), 0, 0, 0},
	{"count", FIELD_INTEGER, offsetof(struct fork_body, count), 0, 1, FORKS_MAX},
};

struct fork_answer {
	struct json_writer writer;
	bool begun;
};

static void put_fork(
	struct json_writer *w, const struct http_request *req, const struct sandbox_view *view)
{
	json_begin_object(w);
	if (view) {
		json_key(w, "sandbox");
		e2b_put_sandbox(w, req, view);
	} else {
		json_key(w, "error");
		json_begin_object(w);
		json_put_int(w, "code", 500);
		json_put_string(w, "message", "the fork ended before it was of use");
		json_end_object(w);
	}
	json_end_object(w);
}

static int e2b_snapshots_fork_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct fork_answer *own = a->own;
	(void)e;
	if (!own->begun) {
		own->begun = true;
		own->writer.out = &a->out;
		json_begin_array(&own->writer);
	}
	if (event->kind == OP_ROW)
		put_fork(&own->writer, a->req, event->sandbox);
	else
		json_end_array(&own->writer);
	return 0;
}

static void e2b_snapshots_handle_fork(struct http_request *req)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct fork_answer),
		.put = e2b_snapshots_fork_put,
		.fail = e2b_fail};
	struct error e = {0};
	struct fork_body fields = {.timeout_s = E2B_TIMEOUT_V1_S, .count = 1};
	struct answer *a = e2b_snapshots_snapshot_answer(req, &form);
	const cJSON *body = answer_json(a, &e);
	if (!body ||
		json_decode_known(body, fork_fields, ARRAY_LEN(fork_fields), "", &fields, &e) < 0 ||
		e2b_check_timeout(fields.timeout_s, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_fork(&a->call, &(struct op_fork){.count = (unsigned)fields.count,
					  .lease_ms = fields.timeout_s * 1000});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/sandboxes/{id}/snapshots", e2b_snapshots_handle_create_snapshot,
		E2B_BODY_LIMIT},
	{HTTP_GET, "/snapshots", e2b_snapshots_handle_list_snapshots, 0},
	{HTTP_POST, "/sandboxes/{id}/fork", e2b_snapshots_handle_fork, E2B_BODY_LIMIT},
};

const struct route_table e2b_snapshot_table = ROUTE_TABLE(routes);
