/* /cli: what Agentuity's command line asks besides: where it is, who it is, whose a sandbox is. */
#include "dialect/agentuity/aliases.h"
#include "dialect/agentuity/list.h"
#include "op/life.h"

static void handle_regions(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	agentuity_begin_data(&w);
	json_begin_array(&w);
	json_begin_object(&w);
	json_put_string(&w, "region", AGENTUITY_REGION);
	json_put_string(&w, "description", "this server");
	json_end_object(&w);
	json_end_array(&w);
	agentuity_respond_data(req, 200, &w);
}

static void handle_organizations(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	agentuity_begin_data(&w);
	json_begin_array(&w);
	json_begin_object(&w);
	json_put_string(&w, "id", tenant_of(req));
	json_put_string(&w, "name", tenant_of(req));
	json_end_object(&w);
	json_end_array(&w);
	agentuity_respond_data(req, 200, &w);
}

static void handle_sandboxes(struct http_request *req)
{
	static const struct answer_records records = {.aliases = &agentuity_sandbox_summary,
		.open = agentuity_begin_data,
		.list = "sandboxes",
		.rest = agentuity_put_total};
	static const struct answer_form form = {ANSWER_LIST(&records)};
	agentuity_list_sandboxes(req, &form);
}

/* One that has ended by itself is still somebody's. */
static void handle_sandbox(struct http_request *req)
{
	static const struct answer_records records = {
		.aliases = &agentuity_sandbox_summary, .open = agentuity_begin_data};
	static const struct answer_form form = {
		ANSWER_RECORD(&records), .fail = agentuity_fail_404};
	struct answer *a = agentuity_answer(req, &form);
	a->op = op_get(&a->call, &(struct op_get){.ended = true});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/cli/region", handle_regions, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/cli/organization", handle_organizations, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/cli/sandbox", handle_sandboxes, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/cli/sandbox/{id}", handle_sandbox, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_cli_table = ROUTE_TABLE(routes);
