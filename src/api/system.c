/* What the server says about itself: liveness, counters, the description of the API. */
#include <string.h>

#include "api/description.h"
#include "api/routes.h"
#include "op/usage.h"

#define OPERATOR "default"

static void system_handle_health(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_object(&w);
	json_put_string(&w, "status", "ok");
	json_put_string(&w, "version", BUNKER_VERSION);
	json_put_string(&w, "domain", server_of(req)->domain);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* What people see who open the address in a browser. */
static void system_handle_root(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_object(&w);
	json_put_string(&w, "name", "bunker");
	json_put_string(&w, "about", "isolated Linux workspaces for AI agents");
	json_put_string(&w, "version", BUNKER_VERSION);
	json_put_string(&w, "health", "/health");
	json_put_string(&w, "description", "/openapi.yaml");
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static void system_handle_description(struct http_request *req)
{
	struct buf body = {0};
	buf_append(&body, api_description, api_description_size);
	http_respond(req, 200, "application/yaml", &body);
}

static void put_metric(
	struct buf *out, const char *name, const char *type, const char *help, uint64_t value)
{
	buf_printf(out, "# HELP bunker_%s %s\n# TYPE bunker_%s %s\nbunker_%s %llu\n", name, help,
		name, type, name, (unsigned long long)value);
}

static int counters_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct box_counters *c = event->counters;
	const struct http_server *http = server_of(a->req)->http;
	struct http_counters h = {0};
	struct buf *out = &a->out;
	(void)e;
	if (http)
		http_server_counters(http, &h);
	put_metric(out, "sandboxes", "gauge", "Sandboxes that exist.", c->sandboxes);
	put_metric(out, "sandboxes_pooled", "gauge", "Booted sandboxes nobody has yet.", c->pooled);
	put_metric(
		out, "sandboxes_created_total", "counter", "Sandboxes created.", c->created_total);
	put_metric(out, "sandboxes_destroyed_total", "counter", "Sandboxes destroyed.",
		c->destroyed_total);
	put_metric(out, "boots_total", "counter", "Boots that succeeded.", c->boots_total);
	put_metric(out, "boot_failures_total", "counter", "Boots that failed.",
		c->boot_failures_total);
	put_metric(
		out, "executions_running", "gauge", "Executions under way.", c->executions_running);
	put_metric(out, "executions_total", "counter", "Executions started.", c->executions_total);
	put_metric(out, "execution_timeouts_total", "counter", "Executions that ran out of time.",
		c->timeouts_total);
	put_metric(out, "oom_kills_total", "counter", "Executions ended by the memory limit.",
		c->oom_kills_total);
	put_metric(out, "http_connections", "gauge", "Open connections.", h.connections_open);
	put_metric(out, "http_connections_total", "counter", "Connections accepted.",
		h.connections_total);
	put_metric(out, "http_requests_unaffordable_total", "counter",
		"Requests refused because there was no memory for them.", h.requests_unaffordable);
	put_metric(out, "http_connections_evicted_total", "counter",
		"Connections without a key that were closed to make room.", h.connections_evicted);
	put_metric(out, "http_requests_total", "counter", "Requests read.", h.requests_total);
	buf_append_str(out, "# HELP bunker_http_responses_total Responses by class of status.\n"
			    "# TYPE bunker_http_responses_total counter\n");
	for (int i = 1; i < 6; i++)
		buf_printf(out, "bunker_http_responses_total{class=\"%dxx\"} %llu\n", i,
			(unsigned long long)h.responses_by_class[i]);
	return 0;
}

static void system_handle_metrics(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "text/plain; version=0.0.4", .pace = ANSWER_WHOLE, .put = counters_put};
	struct error e;
	struct answer *a = api_answer(req, &form);
	if (strcmp(a->call.tenant, OPERATOR) != 0) {
		error_set(&e, ERROR_PERMISSION_DENIED,
			"the counters are of all tenants together, for the tenant '" OPERATOR
			"' only");
		answer_refuse(a, &e);
		return;
	}
	a->op = op_counters(&a->call);
	answer_run(a);
}

static const struct http_route metrics_routes[] = {
	{HTTP_GET, "/metrics", system_handle_metrics, 0},
	{HTTP_GET, "/openapi.yaml", system_handle_description, 0},
};

const struct route_table metrics_table = ROUTE_TABLE(metrics_routes);

static const struct http_route health_routes[] = {
	{HTTP_GET, "/health", system_handle_health, 0},
	{HTTP_GET, "/", system_handle_root, 0},
};

const struct route_table health_table = ROUTE_TABLE(health_routes);
