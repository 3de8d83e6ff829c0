/* GET /sandbox/sandboxes/{id}/events: what happened to a sandbox, also after its end. */
#include "dialect/agentuity/aliases.h"
#include "op/history.h"

#define LIST_DEFAULT 50
#define LIST_MAX     100

static void agentuity_events_handle_list(struct http_request *req)
{
	static const struct answer_records records = {
		.aliases = &agentuity_event, .open = agentuity_begin_data, .list = "events"};
	static const struct answer_form form = {ANSWER_LIST(&records), .fail = agentuity_fail};
	static const char *const directions[] = {"asc", "desc", NULL};
	struct error e;
	int64_t limit = LIST_DEFAULT;
	int direction;
	struct answer *a = agentuity_answer(req, &form);
	a->call.takes_ended = true;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &limit, &e) < 0 ||
		agentuity_query_word(req, "direction", directions, &direction, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_history(&a->call,
		&(struct op_history){.limit = (unsigned)limit, .backwards = direction == 1});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/sandboxes/{id}/events", agentuity_events_handle_list, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_event_table = ROUTE_TABLE(routes);
