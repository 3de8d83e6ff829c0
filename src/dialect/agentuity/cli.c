/* /cli: what Agentuity's command line asks besides: where it is, who it is, whose a sandbox is. */
#include "dialect/agentuity/encode.h"
#include "dialect/agentuity/list.h"
#include "op/life.h"

static void put_or_null(struct json_writer *w, const char *key, const char *text)
{
	json_put_string(w, key, text[0] ? text : NULL);
}

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

static void put_summary(struct json_writer *w, const struct sandbox_view *view)
{
	json_begin_object(w);
	agentuity_put_id(w, "id", "sbx_", view->id);
	put_or_null(w, "name", view->name);
	put_or_null(w, "description", view->description);
	json_put_string(w, "status", agentuity_status(view));
	json_put_string(w, "region", AGENTUITY_REGION);
	json_put_time(w, "createdAt", view->created_ms);
	json_put_string(w, "orgId", view->tenant);
	json_put_string(w, "orgName", view->tenant);
	put_or_null(w, "projectId", view->project);
	json_end_object(w);
}

static void handle_sandboxes(struct http_request *req)
{
	agentuity_list_sandboxes(req, put_summary);
}

static int summary_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	agentuity_begin_data(&w);
	put_summary(&w, event->sandbox);
	json_end_object(&w);
	return 0;
}

/* One that has ended by itself is still somebody's. */
static void handle_sandbox(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = summary_put,
		.fail = agentuity_fail_404};
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
