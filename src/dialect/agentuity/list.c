/* GET /sandbox. Pages are by offset. Those that have ended are listed when they are asked for, by
 * their status. */
#include "dialect/agentuity/list.h"

#include <string.h>

#include "answer/query.h"
#include "dialect/agentuity/aliases.h"
#include "op/life.h"

#define LIST_DEFAULT 50
#define LIST_MAX     100

/* In the order of enum sandbox_order. */
static const char *const sorts[] = {
	"created", "updated", "name", "status", "mode", "execution_count", NULL};
static const char *const directions[] = {"desc", "asc", NULL};
static const char *const modes[] = {"", "oneshot", "interactive", NULL};
static const char *const statuses[] = {"", "creating", "idle", "running", "paused", "stopping",
	"suspended", "failed", "terminated", "deleted", NULL};

static int agentuity_list_parse_status(struct http_request *req, unsigned *ret, struct error *e)
{
	const char *deleted = http_query(req, "deletedOnly");
	int word;
	if (agentuity_query_word(req, "status", statuses, &word, e) < 0)
		return -1;
	for (int i = 0; i < SANDBOX_STATUS_COUNT; i++)
		if (strcmp(statuses[word], sandbox_status_names[i]) == 0)
			*ret = 1u << i;
	if (!deleted || strcmp(deleted, "true") != 0)
		return 0;
	if (*ret != 0 && *ret != 1u << SANDBOX_DELETED)
		return error_set_field(e, ERROR_INVALID_FIELD, "deletedOnly",
			"\"deletedOnly\" cannot be beside another \"status\"");
	*ret = 1u << SANDBOX_DELETED;
	return 0;
}

static const char *query_snapshot(const struct http_request *req)
{
	const char *snapshot = http_query(req, "snapshotId");
	return snapshot && strncmp(snapshot, "snp_", 4) == 0 ? snapshot + 4 : snapshot;
}

static int agentuity_list_parse_query(
	struct http_request *req, struct op_list_sandboxes *q, struct error *e)
{
	int sort, direction, mode;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &q->limit, e) < 0 ||
		query_optional_number(req, "offset", 0, INT32_MAX, &q->offset, e) < 0 ||
		agentuity_query_word(req, "sort", sorts, &sort, e) < 0 ||
		agentuity_query_word(req, "direction", directions, &direction, e) < 0 ||
		agentuity_query_word(req, "mode", modes, &mode, e) < 0 ||
		agentuity_list_parse_status(req, &q->statuses, e) < 0)
		return -1;
	q->order = (enum sandbox_order)sort;
	q->backwards = direction == 0;
	q->ephemeral = mode == 0 ? -1 : mode == 1;
	q->name = http_query(req, "name");
	q->project = http_query(req, "projectId");
	q->snapshot = query_snapshot(req);
	return 0;
}

/* ---- the answer ---- */

void agentuity_list_sandboxes(struct http_request *req, const struct answer_form *form)
{
	struct error e;
	struct op_list_sandboxes query = {.limit = LIST_DEFAULT, .apparent = true, .counts = true};
	struct answer *a = agentuity_answer(req, form);
	if (agentuity_list_parse_query(req, &query, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_list_sandboxes(&a->call, &query);
	answer_run(a);
}

static void agentuity_list_handle_list(struct http_request *req)
{
	static const struct answer_records records = {.aliases = &agentuity_sandbox,
		.open = agentuity_begin_data,
		.list = "sandboxes",
		.rest = agentuity_put_total};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	agentuity_list_sandboxes(req, &form);
}

static const struct http_route routes[] = {
	{HTTP_GET, "", agentuity_list_handle_list, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_list_table = ROUTE_TABLE(routes);
