/*
 * Reusable bases for sandboxes: POST /sandbox/{id}/snapshot, /sandbox/snapshots and what is below.
 * None of them is public: they belong to their tenant.
 */
#include "dialect/agentuity/snapshots.h"

#include <stdio.h>
#include <string.h>

#include "answer/json_body.h"
#include "answer/query.h"
#include "op/snapshots.h"

#define LIST_DEFAULT    50
#define LIST_MAX        100
#define LINEAGE_DEFAULT 100
#define LINEAGE_MAX     1000
#define REF_SIZE        300

/* ---- answers ---- */

struct snapshot_answer {
	struct answer_list list; /* of a list; the first, as answer_put_list wants it */
	char ref[REF_SIZE];      /* as the client has it */
	bool refused;            /* *refusal is told, once the snapshot is known to be there */
	struct error refusal;
};

void agentuity_put_no_snapshot(struct http_request *req, struct buf *out, const char *ref)
{
	char message[320];
	snprintf(message, sizeof message, "snapshot \"%.256s\" not found", ref);
	agentuity_put_failure(req, out, "SNAPSHOT_NOT_FOUND", message);
}

static void respond_no_snapshot(struct http_request *req, const char *ref)
{
	struct buf body = {0};
	agentuity_put_no_snapshot(req, &body, ref);
	http_respond(req, 200, "application/json", &body);
}

static enum answer_failure snapshot_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct snapshot_answer *own = a->own;
	if (!event || event->reason != OP_NO_SNAPSHOT)
		return agentuity_fail(a, e, event);
	a->status = 200;
	a->type = "application/json";
	agentuity_put_no_snapshot(a->req, &a->out, own->ref);
	return ANSWER_PUT;
}

static int agentuity_snapshots_snapshot_put(
	struct answer *a, const struct op_event *event, struct error *e)
{
	const struct snapshot_answer *own = a->own;
	if (!own->refused)
		return answer_put_record(a, event, e);
	*e = own->refusal;
	return -1;
}

const struct answer_records agentuity_snapshot_records = {
	.aliases = &agentuity_snapshot, .open = agentuity_begin_data};

static const struct answer_form snapshot_form = {.type = "application/json",
	.pace = ANSWER_WHOLE,
	.own_size = sizeof(struct snapshot_answer),
	.put = agentuity_snapshots_snapshot_put,
	.records = &agentuity_snapshot_records,
	.fail = snapshot_fail};

/* An answer about the snapshot that the path names. */
static struct answer *snapshot_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	struct snapshot_answer *own = a->own;
	snprintf(own->ref, sizeof own->ref, "%s", http_param(req, "snapshot"));
	return a;
}

/* An id may have a prefix; names, tags and ids without one are as the core has them. */
static const char *snapshot_ref(const struct answer *a)
{
	const char *ref = ((const struct snapshot_answer *)a->own)->ref;
	bool has_prefix = strncmp(ref, "snp_", 4) == 0 && id_is_valid(ref + 4);
	return has_prefix ? ref + 4 : ref;
}

/* ---- create ---- */

struct create_body {
	const char *name, *tag, *description;
	bool is_public;
};

#define AT(member) offsetof(struct create_body, member)

static const struct json_field create_fields[] = {
	{"name", FIELD_TEXT, AT(name), 0, 0, 128},
	{"tag", FIELD_TEXT, AT(tag), 0, 0, 128},
	{"description", FIELD_TEXT, AT(description), 0, 0, 1024},
	{"public", FIELD_BOOL, AT(is_public), 0, 0, 0},
};

static int decode_snapshot(struct answer *a, struct create_body *ret, struct error *e)
{
	const cJSON *body = answer_json(a, e);
	if (!body ||
		json_decode_known(body, create_fields, ARRAY_LEN(create_fields), "", ret, e) < 0)
		return -1;
	if (ret->is_public)
		return error_set_field(
			e, ERROR_NOT_IMPLEMENTED, "public", "this server has no public snapshots");
	return 0;
}

static void agentuity_snapshots_handle_create_snapshot(struct http_request *req)
{
	struct error e = {0};
	struct create_body body = {0};
	struct answer *a = agentuity_answer(req, &snapshot_form);
	if (decode_snapshot(a, &body, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->status = 201;
	a->op = op_snapshot_create(&a->call, &(struct snapshot_spec){.name = body.name,
						     .tag = body.tag,
						     .description = body.description,
						     .measure = true});
	answer_run(a);
}

/* ---- one ---- */

static void agentuity_snapshots_handle_get_snapshot(struct http_request *req)
{
	struct answer *a = snapshot_answer(req, &snapshot_form);
	a->op = op_snapshot_get(&a->call, snapshot_ref(a));
	answer_run(a);
}

static int agentuity_snapshots_decode_tag(struct answer *a, const char **ret, struct error *e)
{
	const cJSON *body = answer_json(a, e);
	const cJSON *tag = body ? cJSON_GetObjectItemCaseSensitive(body, "tag") : NULL;
	if (!body)
		return -1;
	if (!cJSON_IsString(tag) && !cJSON_IsNull(tag))
		return error_set_field(
			e, ERROR_MISSING_FIELD, "tag", "\"tag\" must be a string, or null");
	*ret = cJSON_IsNull(tag) ? NULL : tag->valuestring;
	return 0;
}

static void handle_tag(struct http_request *req)
{
	const char *tag = NULL;
	struct answer *a = snapshot_answer(req, &snapshot_form);
	struct snapshot_answer *own = a->own;
	own->refused = agentuity_snapshots_decode_tag(a, &tag, &own->refusal) < 0;
	a->op = own->refused ? op_snapshot_get(&a->call, snapshot_ref(a))
			     : op_snapshot_retag(&a->call, snapshot_ref(a), tag);
	answer_run(a);
}

static void agentuity_snapshots_handle_delete_snapshot(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct snapshot_answer),
		.put = agentuity_put_success,
		.fail = snapshot_fail};
	struct answer *a = snapshot_answer(req, &form);
	a->op = op_snapshot_delete(&a->call, snapshot_ref(a));
	answer_run(a);
}

/* ---- many ---- */

static const char *const sorts[] = {
	[SNAPSHOT_ORDER_CREATION] = "created",
	[SNAPSHOT_ORDER_NAME] = "name",
	[SNAPSHOT_ORDER_BYTES] = "size",
	[SNAPSHOT_ORDER_FILES] = "files",
	NULL,
};

/* What is no sandbox's id matches none. */
static int parse_list(struct http_request *req, struct snapshot_filter *ret, struct error *e)
{
	static const char *const directions[] = {"desc", "asc", NULL};
	int sort, direction;
	const char *of = http_query(req, "sandboxId");
	*ret = (struct snapshot_filter){.limit = LIST_DEFAULT};
	if (query_optional_number(req, "limit", 1, LIST_MAX, &ret->limit, e) < 0 ||
		query_optional_number(req, "offset", 0, INT32_MAX, &ret->offset, e) < 0 ||
		agentuity_query_word(req, "sort", sorts, &sort, e) < 0 ||
		agentuity_query_word(req, "direction", directions, &direction, e) < 0)
		return -1;
	ret->order = (enum snapshot_order)sort;
	ret->backwards = direction == 0;
	if (of && of[0])
		ret->sandbox = strncmp(of, "sbx_", 4) == 0 ? of + 4 : of;
	return 0;
}

static void agentuity_snapshots_handle_list_snapshots(struct http_request *req)
{
	static const struct answer_records records = {.aliases = &agentuity_snapshot,
		.open = agentuity_begin_data,
		.list = "snapshots",
		.rest = agentuity_put_total};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	struct error e = {0};
	struct snapshot_filter filter;
	struct answer *a = answer_new(req, &form);
	if (parse_list(req, &filter, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_snapshot_list(&a->call, &filter);
	answer_run(a);
}

/* ---- lineage ---- */

/* ?snapshot=ID or NAME:TAG, or ?name=&tag=. */
static int lineage_ref(const struct http_request *req, char out[REF_SIZE], struct error *e)
{
	const char *snapshot = http_query(req, "snapshot"), *name = http_query(req, "name");
	const char *tag = http_query(req, "tag");
	if (snapshot && snapshot[0])
		snprintf(out, REF_SIZE, "%s", snapshot);
	else if (name && name[0])
		snprintf(out, REF_SIZE, "%s%s%s", name, tag && tag[0] ? ":" : "", tag ? tag : "");
	else
		return error_set_field(
			e, ERROR_MISSING_FIELD, "snapshot", "\"snapshot\" or \"name\" is missing");
	return 0;
}

static void agentuity_snapshots_handle_lineage(struct http_request *req)
{
	static const struct answer_records records = {.aliases = &agentuity_ancestor,
		.open = agentuity_begin_data,
		.list = "lineage",
		.rest = agentuity_put_total};
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct snapshot_answer),
		.put = answer_put_list,
		.records = &records,
		.fail = snapshot_fail};
	struct error e = {0};
	int64_t limit = LINEAGE_DEFAULT;
	struct answer *a = answer_new(req, &form);
	struct snapshot_answer *own = a->own;
	if (query_optional_number(req, "limit", 1, LINEAGE_MAX, &limit, &e) < 0 ||
		lineage_ref(req, own->ref, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_snapshot_lineage(&a->call, snapshot_ref(a), limit);
	answer_run(a);
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
	respond_no_snapshot(req, http_param(req, "snapshot"));
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}/snapshot", agentuity_snapshots_handle_create_snapshot,
		AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots", agentuity_snapshots_handle_list_snapshots, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/lineage", agentuity_snapshots_handle_lineage, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/public", handle_list_public, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/public/{snapshot}", handle_get_public, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/snapshots/{snapshot}", agentuity_snapshots_handle_get_snapshot,
		AGENTUITY_BODY_LIMIT},
	{HTTP_PATCH, "/snapshots/{snapshot}", handle_tag, AGENTUITY_BODY_LIMIT},
	{HTTP_DELETE, "/snapshots/{snapshot}", agentuity_snapshots_handle_delete_snapshot,
		AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_snapshot_table = ROUTE_TABLE(routes);
