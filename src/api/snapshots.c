/* /v1/snapshots and /v1/sandboxes/{id}/snapshots: create, list, get, retag, delete, lineage; and
 * /v1/sandboxes/{id}/fork. */
#include "op/snapshots.h"

#include <string.h>

#include "answer/records.h"
#include "answer/json_body.h"
#include "api/encode.h"
#include "api/lookup.h"
#include "api/routes.h"

/* ---- one ---- */

struct snapshot_answer {
	bool created; /* tells how long the sandbox stood still */
	bool refused; /* *refusal is told, once the snapshot is known to be there */
	struct error refusal;
};

static void snapshot_put_rest(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	if (((const struct snapshot_answer *)a->own)->created)
		encode_milliseconds(w, "frozenMs", event->frozen_us);
}

static const struct answer_records snapshot_records = {
	.table = &snapshot_model, .rest = snapshot_put_rest};

static int api_snapshots_snapshot_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	const struct snapshot_answer *own = a->own;
	if (!own->refused)
		return answer_put_record(a, event, e);
	*e = own->refusal;
	return -1;
}

static const struct answer_form snapshot_form = {.type = "application/json",
	.pace = ANSWER_WHOLE,
	.own_size = sizeof(struct snapshot_answer),
	.put = api_snapshots_snapshot_put,
	.records = &snapshot_records};

static void api_snapshots_handle_get_snapshot(struct http_request *req)
{
	struct answer *a = api_answer(req, &snapshot_form);
	a->op = op_snapshot_get(&a->call, http_param(req, "snapshot"));
	answer_run(a);
}

/* ---- create ---- */

static const struct json_field snapshot_create_fields[] = {
	{"name", FIELD_TEXT, offsetof(struct snapshot_spec, name), 0, 0, 128},
	{"tag", FIELD_TEXT, offsetof(struct snapshot_spec, tag), FIELD_NOT_EMPTY, 0, 128},
	{"description", FIELD_TEXT, offsetof(struct snapshot_spec, description), 0, 0, 1024},
};

static void api_snapshots_handle_create_snapshot(struct http_request *req)
{
	struct snapshot_spec spec = {0};
	struct error e = {0};
	struct answer *a = api_answer(req, &snapshot_form);
	const cJSON *body = answer_typed_json(a, &e);
	if (!body || json_decode(body, snapshot_create_fields, ARRAY_LEN(snapshot_create_fields),
			     "", &spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	((struct snapshot_answer *)a->own)->created = true;
	a->op = op_snapshot_create(&a->call, &spec);
	answer_run(a);
}

/* ---- lists ---- */

static int api_snapshots_snapshot_list_parse(
	struct http_request *req, struct snapshot_filter *ret, struct error *e)
{
	static const char *const known[] = {"name", "tag", "sandbox", "limit", "cursor"};
	const char *name, *value;
	struct api_page page;
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		bool is_known = false;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			is_known |= strcmp(name, known[k]) == 0;
		if (!is_known)
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "there is no filter '%.64s'", name);
	}
	if (api_parse_page(req, &page, e) < 0)
		return -1;
	*ret = (struct snapshot_filter){.name = http_query(req, "name"),
		.tag = http_query(req, "tag"),
		.sandbox = http_query(req, "sandbox"),
		.after_ms = page.before_ms,
		.limit = page.limit};
	memcpy(ret->after_id, page.before_id, ID_SIZE);
	return 0;
}

static void api_snapshots_handle_list_snapshots(struct http_request *req)
{
	static const struct answer_records records = {.table = &snapshot_model,
		.list = "snapshots",
		.rest = api_put_next,
		.place = snapshot_place};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	struct error e = {0};
	struct snapshot_filter filter;
	struct answer *a = api_answer(req, &form);
	if (api_snapshots_snapshot_list_parse(req, &filter, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_snapshot_list(&a->call, &filter);
	answer_run(a);
}

/* From itself to the root. */
static void api_snapshots_handle_lineage(struct http_request *req)
{
	static const struct answer_records records = {.table = &snapshot_model, .list = "lineage"};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	struct answer *a = api_answer(req, &form);
	a->op = op_snapshot_lineage(&a->call, http_param(req, "snapshot"), INT64_MAX);
	answer_run(a);
}

/* ---- retag, delete ---- */

/* null, or a text. */
static int api_snapshots_decode_tag(const cJSON *body, const char **ret, struct error *e)
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
	const char *tag = NULL, *snapshot = http_param(req, "snapshot");
	struct answer *a = api_answer(req, &snapshot_form);
	struct snapshot_answer *own = a->own;
	const cJSON *body = answer_typed_json(a, &own->refusal);
	own->refused = !body || api_snapshots_decode_tag(body, &tag, &own->refusal) < 0;
	a->op = own->refused ? op_snapshot_get(&a->call, snapshot)
			     : op_snapshot_retag(&a->call, snapshot, tag);
	answer_run(a);
}

static void api_snapshots_handle_delete_snapshot(struct http_request *req)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	struct answer *a = api_answer(req, &form);
	a->status = 204;
	a->op = op_snapshot_delete(&a->call, http_param(req, "snapshot"));
	answer_run(a);
}

/* ---- fork ---- */

struct fork_body {
	int64_t count;
};

static const struct json_field fork_fields[] = {
	{"count", FIELD_INTEGER, offsetof(struct fork_body, count), 0, 1, FORKS_MAX},
};

static void fork_put_rest(struct answer *a, struct json_writer *w, const struct op_event *event)
{
	(void)a;
	encode_milliseconds(w, "frozenMs", event->frozen_us);
}

static void api_snapshots_handle_fork(struct http_request *req)
{
	static const struct answer_records records = {.table = &sandbox_model,
		.own = encode_sandbox_own,
		.list = "sandboxes",
		.rest = fork_put_rest};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	struct fork_body body = {.count = 1};
	struct error e = {0};
	struct answer *a = api_answer(req, &form);
	if (answer_decode_json(a, fork_fields, ARRAY_LEN(fork_fields), &body, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_fork(&a->call, &(struct op_fork){.count = (unsigned)body.count});
	answer_run(a);
}

static const struct http_route snapshot_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/snapshots", api_snapshots_handle_create_snapshot,
		SMALL_BODY_LIMIT},
	{HTTP_POST, "/v1/sandboxes/{id}/fork", api_snapshots_handle_fork, SMALL_BODY_LIMIT},
	{HTTP_GET, "/v1/snapshots", api_snapshots_handle_list_snapshots, 0},
	{HTTP_GET, "/v1/snapshots/{snapshot}", api_snapshots_handle_get_snapshot, 0},
	{HTTP_PATCH, "/v1/snapshots/{snapshot}", handle_retag, SMALL_BODY_LIMIT},
	{HTTP_DELETE, "/v1/snapshots/{snapshot}", api_snapshots_handle_delete_snapshot, 0},
	{HTTP_GET, "/v1/snapshots/{snapshot}/lineage", api_snapshots_handle_lineage, 0},
};

const struct route_table snapshot_table = ROUTE_TABLE(snapshot_routes);
