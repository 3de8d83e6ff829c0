/* GET /v1/sandboxes: a page in the order of creation. */
#include <string.h>

#include "answer/records.h"
#include "answer/query.h"
#include "api/encode.h"
#include "api/lookup.h"
#include "op/life.h"

#define LIST_LIMIT_DEFAULT 100
#define LIST_LIMIT_MAX     1000

/* ---- the query ---- */

static int api_sandbox_list_parse_status(const char *status, unsigned *ret, struct error *e)
{
	if (!status)
		return 0;
	for (int i = 0; i < SANDBOX_STATUS_COUNT; i++)
		if (strcmp(status, sandbox_status_name((enum sandbox_status)i)) == 0)
			*ret = 1u << i;
	return *ret ? 0
		    : error_set_field(e, ERROR_INVALID_FIELD, "status",
			      "there is no status '%.32s'", status);
}

/* Every parameter but the known ones is metadata.KEY=VALUE. */
static int api_sandbox_list_parse_metadata(struct http_request *req, struct scratch *memory,
	struct op_list_sandboxes *ret, struct error *e)
{
	static const char *const known[] = {"status", "project", "name", "limit", "cursor"};
	const char *name, *value;
	size_t count = 0;
	while (http_query_at(req, count, &name, &value))
		count++;
	struct op_pair *pairs = scratch_alloc(memory, (count + 1) * sizeof *pairs);
	for (size_t i = 0; http_query_at(req, i, &name, &value); i++) {
		bool is_known = false;
		for (size_t k = 0; k < ARRAY_LEN(known); k++)
			is_known |= strcmp(name, known[k]) == 0;
		if (is_known)
			continue;
		if (strncmp(name, "metadata.", 9) != 0)
			return error_set_field(
				e, ERROR_UNKNOWN_FIELD, name, "there is no filter '%.64s'", name);
		pairs[ret->metadata_count++] = (struct op_pair){name + 9, value};
	}
	ret->metadata = pairs;
	return 0;
}

static int parse_list_query(struct http_request *req, struct scratch *memory,
	struct op_list_sandboxes *ret, struct error *e)
{
	const char *cursor = http_query(req, "cursor");
	ret->project = http_query(req, "project");
	ret->name = http_query(req, "name");
	if (api_sandbox_list_parse_metadata(req, memory, ret, e) < 0 ||
		api_sandbox_list_parse_status(http_query(req, "status"), &ret->statuses, e) < 0 ||
		query_number(req, "limit", 1, LIST_LIMIT_MAX, &ret->limit, e) < 0)
		return -1;
	if (cursor && !cursor_parse(cursor, &ret->place_ms, ret->place_id))
		return error_set_field(e, ERROR_INVALID_FIELD, "cursor",
			"\"cursor\" must be what an earlier answer gave as nextCursor");
	return 0;
}

/* ---- the answer ---- */

static void handle_list_sandboxes(struct http_request *req)
{
	static const struct answer_records records = {.table = &sandbox_model,
		.own = encode_sandbox_own,
		.list = "sandboxes",
		.rest = api_put_next,
		.place = sandbox_place};
	static const struct answer_form form = {ANSWER_PACED_LIST(&records)};
	struct error e;
	struct op_list_sandboxes query = {.ephemeral = -1, .limit = LIST_LIMIT_DEFAULT};
	struct answer *a = api_answer(req, &form);
	if (parse_list_query(req, &a->call.memory, &query, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_list_sandboxes(&a->call, &query);
	answer_run(a);
}

static const struct http_route list_routes[] = {
	{HTTP_GET, "/v1/sandboxes", handle_list_sandboxes, 0},
};

const struct route_table sandbox_list_table = ROUTE_TABLE(list_routes);
