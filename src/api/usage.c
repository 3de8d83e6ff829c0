/*
 * /v1/sandboxes/{id}/usage and /metrics: what a sandbox has used, and its recent history;
 * /v1/quota: what the tenant may have and has.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "base/clock.h"
#include "base/units.h"
#include "box/sandbox/tenant.h"
#include "box/sandbox/usage.h"

/* ---- usage ---- */

struct usage_call {
	struct http_request *req; /* NULL once the client has gone */
};

static void usage_aborted(void *arg)
{
	((struct usage_call *)arg)->req = NULL;
}

static void put_totals(struct json_writer *w, int64_t cpu_us, int64_t memory_byte_seconds)
{
	json_put_int(w, "cpuTimeMs", cpu_us / 1000);
	json_put_int(w, "memoryByteSeconds", memory_byte_seconds);
	/* Sandboxes have no network yet. */
	json_put_int(w, "networkBytesIn", 0);
	json_put_int(w, "networkBytesOut", 0);
}

static void respond_gone(struct http_request *req)
{
	struct error e;
	error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
	http_respond_error(req, &e);
}

static void measured(void *arg, const struct usage_view *u)
{
	struct usage_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (call->req && u) {
		json_begin_object(&w);
		put_totals(&w, u->cpu_us, u->memory_byte_seconds);
		json_put_int(&w, "memoryBytes", u->memory);
		json_put_int(&w, "pids", u->pids);
		if (u->disk >= 0)
			json_put_int(&w, "diskBytes", u->disk);
		json_end_object(&w);
		api_respond_json(call->req, 200, &body);
	} else if (call->req) {
		respond_gone(call->req);
	}
	free(call);
}

static void ended_loaded(void *arg, const struct sandbox_view *view)
{
	struct usage_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (call->req && view) {
		json_begin_object(&w);
		put_totals(&w, view->cpu_us, view->memory_byte_seconds);
		json_put_time(&w, "endedAt", view->ended_ms);
		json_end_object(&w);
		api_respond_json(call->req, 200, &body);
	} else if (call->req) {
		respond_gone(call->req);
	}
	free(call);
}

static void handle_usage(struct http_request *req)
{
	const char *id = http_param(req, "id");
	struct usage_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	http_on_abort(req, usage_aborted, call);
	struct sandbox *s = sandbox_find(server_of(req)->box, tenant_of(req), id);
	if (s)
		usage_measure(s, measured, call);
	else
		sandbox_load_ended(server_of(req)->box, tenant_of(req), id, ended_loaded, call);
}

/* ---- history ---- */

static void put_sample(void *arg, const struct usage_sample *sample)
{
	struct json_writer *w = arg;
	json_begin_object(w);
	json_put_time(w, "time", sample->time_ms);
	json_put_int(w, "cpuTimeMs", sample->cpu_us / 1000);
	json_put_int(w, "memoryBytes", sample->memory);
	if (sample->disk >= 0)
		json_put_int(w, "diskBytes", sample->disk);
	json_end_object(w);
}

/* Seconds since 1970. */
static int parse_time(struct http_request *req, const char *name, int64_t *ms, struct error *e)
{
	const char *text = http_query(req, name);
	char *end;
	if (!text)
		return 0;
	long long seconds = strtoll(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || seconds > INT64_MAX / 1000)
		return error_set_field(e, ERROR_INVALID_FIELD, name,
			"\"%s\" must be a number of seconds since 1970", name);
	*ms = seconds * 1000;
	return 0;
}

static void handle_metrics(struct http_request *req)
{
	struct error e;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	int64_t begin = 0, end = INT64_MAX;
	struct sandbox *s = api_sandbox(req);
	if (!s)
		return;
	if (parse_time(req, "start", &begin, &e) < 0 || parse_time(req, "end", &end, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	sandbox_view(s, &view);
	json_begin_object(&w);
	json_put_int(&w, "cpuMillicores", view.resources.cpu);
	json_put_int(&w, "memoryLimitBytes", view.resources.memory);
	if (view.resources.disk)
		json_put_int(&w, "diskLimitBytes", view.resources.disk);
	json_key(&w, "samples");
	json_begin_array(&w);
	usage_each_sample(s, begin, end, put_sample, &w);
	json_end_array(&w);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

/* ---- quota ---- */

static void put_amount(struct json_writer *w, const char *name, int64_t used, int64_t limit,
	void (*format)(int64_t amount, char out[UNITS_TEXT_SIZE]))
{
	char text[UNITS_TEXT_SIZE];
	json_key(w, name);
	json_begin_object(w);
	format(used, text);
	json_put_string(w, "used", text);
	if (limit) {
		format(limit, text);
		json_put_string(w, "limit", text);
	}
	json_end_object(w);
}

static void handle_quota(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct tenant_amounts limit, used;
	tenant_show(server_of(req)->box, tenant_of(req), &limit, &used);
	json_begin_object(&w);
	json_put_string(&w, "tenant", tenant_of(req));
	json_key(&w, "sandboxes");
	json_begin_object(&w);
	json_put_int(&w, "used", used.sandboxes);
	json_put_int(&w, "limit", limit.sandboxes);
	json_end_object(&w);
	put_amount(&w, "cpu", used.cpu, limit.cpu, units_format_millicores);
	put_amount(&w, "memory", used.memory, limit.memory, units_format_size);
	put_amount(&w, "disk", used.disk, limit.disk, units_format_size);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static const struct http_route usage_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/usage", handle_usage, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/metrics", handle_metrics, 0},
	{HTTP_GET, "/v1/quota", handle_quota, 0},
};

const struct route_table usage_table = ROUTE_TABLE(usage_routes);
