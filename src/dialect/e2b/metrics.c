/*
 * What sandboxes use: of one over a while, of many now, and by envd's own /metrics.
 *
 * The core samples now and then; the last item is always measured for the request. A share of the
 * processor is that of the time between two samples, 100 being all that the sandbox may have.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "box/sandbox/usage.h"
#include "dialect/e2b/encode.h"
#include "dialect/e2b/envd.h"
#include "dialect/e2b/access.h"

#define MIB     (1 << 20)
#define IDS_MAX 100

/* ---- one item ---- */

struct gauge {
	int64_t time_ms;
	double cpu_percent;
	int64_t memory, disk;
};

static void put_decimal(struct json_writer *w, const char *key, double value)
{
	char text[32];
	snprintf(text, sizeof text, "%.2f", value);
	json_key(w, key);
	json_raw(w, text);
}

static void put_gauge(struct json_writer *w, const struct gauge *g, const struct resources *limits)
{
	json_begin_object(w);
	json_put_time(w, "timestamp", g->time_ms);
	json_put_int(w, "timestampUnix", g->time_ms / 1000);
	json_put_int(w, "cpuCount", (limits->cpu + 999) / 1000);
	put_decimal(w, "cpuUsedPct", g->cpu_percent);
	json_put_int(w, "memUsed", g->memory);
	json_put_int(w, "memTotal", limits->memory);
	json_put_int(w, "memCache", 0);
	json_put_int(w, "diskUsed", g->disk < 0 ? 0 : g->disk);
	json_put_int(w, "diskTotal", limits->disk);
	json_end_object(w);
}

/* Samples as they come, each seen from the one before. */
struct gauging {
	const struct resources *limits;
	int64_t begin_ms, end_ms;
	int64_t last_ms, last_cpu_us; /* 0: none yet */
	struct json_writer *json;     /* NULL: only the last one is wanted */
	struct gauge last;
};

static void take(struct gauging *g, int64_t time_ms, int64_t cpu_us, int64_t memory, int64_t disk)
{
	double percent = 0;
	if (g->last_ms && time_ms > g->last_ms && g->limits->cpu > 0)
		percent = (double)(cpu_us - g->last_cpu_us) /
			  ((double)(time_ms - g->last_ms) * (double)g->limits->cpu) * 100;
	g->last_ms = time_ms;
	g->last_cpu_us = cpu_us;
	g->last = (struct gauge){time_ms, percent < 0 ? 0 : percent, memory, disk};
	if (g->json && time_ms >= g->begin_ms && time_ms <= g->end_ms)
		put_gauge(g->json, &g->last, g->limits);
}

static void take_sample(void *arg, const struct usage_sample *sample)
{
	take(arg, sample->time_ms, sample->cpu_us, sample->memory, sample->disk);
}

/* ---- calls that measure ---- */

struct metrics_call {
	struct http_request *req; /* NULL once the client has gone */
	const struct server *server;
	char id[ID_SIZE];
	int64_t begin_ms, end_ms;
	void (*answer)(
		struct metrics_call *call, const struct sandbox *s, const struct usage_view *usage);
};

static void call_aborted(void *arg)
{
	((struct metrics_call *)arg)->req = NULL;
}

static void call_measured(void *arg, const struct usage_view *usage)
{
	struct metrics_call *call = arg;
	struct error e;
	const struct sandbox *s = sandbox_find_any(call->server->box, call->id);
	if (call->req && (!usage || !s)) {
		error_set(&e, ERROR_NOT_FOUND, "sandbox \"%s\" not found", call->id);
		http_respond_error(call->req, &e);
	} else if (call->req) {
		call->answer(call, s, usage);
	}
	free(call);
}

static struct metrics_call *call_new(struct http_request *req, const struct sandbox *s)
{
	struct metrics_call *call = calloc(1, sizeof *call);
	struct sandbox_view view;
	if (!call)
		abort();
	sandbox_view(s, &view);
	call->req = req;
	call->server = server_of(req);
	memcpy(call->id, view.id, ID_SIZE);
	http_on_abort(req, call_aborted, call);
	return call;
}

/* ---- GET /sandboxes/{id}/metrics ---- */

static void answer_history(
	struct metrics_call *call, const struct sandbox *s, const struct usage_view *usage)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	sandbox_view(s, &view);
	struct gauging g = {.limits = &view.resources,
		.begin_ms = call->begin_ms,
		.end_ms = call->end_ms,
		.json = &w};
	json_begin_array(&w);
	usage_each_sample(s, 0, INT64_MAX, take_sample, &g);
	take(&g, clock_wall_ms(), usage->cpu_us, usage->memory, usage->disk);
	json_end_array(&w);
	e2b_respond_json(call->req, 200, &body);
}

static int parse_second(
	const struct http_request *req, const char *name, int64_t *ms, struct error *e)
{
	const char *text = http_query(req, name);
	size_t len = text ? strlen(text) : 0;
	if (len == 0)
		return 0;
	if (len > 12 || strspn(text, "0123456789") != len)
		return error_set_field(e, ERROR_INVALID_FIELD, name,
			"\"%s\" must be a time in seconds since 1970", name);
	*ms = strtoll(text, NULL, 10) * 1000;
	return 0;
}

static void handle_history(struct http_request *req)
{
	struct error e;
	int64_t begin_ms = 0, end_ms = INT64_MAX;
	struct sandbox *s = e2b_sandbox(req);
	if (!s)
		return;
	if (parse_second(req, "start", &begin_ms, &e) < 0 ||
		parse_second(req, "end", &end_ms, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct metrics_call *call = call_new(req, s);
	call->begin_ms = begin_ms;
	/* A second has not ended before the next one begins. */
	call->end_ms = end_ms == INT64_MAX ? end_ms : end_ms + 999;
	call->answer = answer_history;
	usage_measure(s, call_measured, call);
}

/* ---- GET /sandboxes/metrics?sandbox_ids=a,b ---- */

static void put_latest(
	struct json_writer *w, const struct server *d, const char *tenant, const char *name)
{
	char id[ID_SIZE];
	struct sandbox_view view;
	const struct sandbox *s =
		destination_parse_id(name, id) ? sandbox_find(d->box, tenant, id) : NULL;
	if (!s)
		return;
	sandbox_view(s, &view);
	struct gauging g = {.limits = &view.resources};
	usage_each_sample(s, 0, INT64_MAX, take_sample, &g);
	if (!g.last_ms)
		return;
	json_key(w, view.id);
	put_gauge(w, &g.last, &view.resources);
}

static void handle_many(struct http_request *req)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	autofree char *ids =
		strdup(http_query(req, "sandbox_ids") ? http_query(req, "sandbox_ids") : "");
	char *state = NULL;
	if (!ids)
		abort();
	json_begin_object(&w);
	json_key(&w, "sandboxes");
	json_begin_object(&w);
	unsigned count = 0;
	for (char *id = strtok_r(ids, ",", &state); id && count < IDS_MAX;
		id = strtok_r(NULL, ",", &state), count++)
		put_latest(&w, server_of(req), tenant_of(req), id);
	json_end_object(&w);
	json_end_object(&w);
	e2b_respond_json(req, 200, &body);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/sandboxes/{id}/metrics", handle_history, 0},
	{HTTP_GET, "/sandboxes/metrics", handle_many, 0},
};

const struct route_table e2b_metrics_table = ROUTE_TABLE(routes);

/* ---- envd's GET /metrics ---- */

static void answer_now(
	struct metrics_call *call, const struct sandbox *s, const struct usage_view *usage)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct sandbox_view view;
	sandbox_view(s, &view);
	struct gauging g = {.limits = &view.resources};
	usage_each_sample(s, 0, INT64_MAX, take_sample, &g);
	take(&g, clock_wall_ms(), usage->cpu_us, usage->memory, usage->disk);
	json_begin_object(&w);
	json_put_int(&w, "ts", g.last.time_ms / 1000);
	json_put_int(&w, "cpu_count", (view.resources.cpu + 999) / 1000);
	put_decimal(&w, "cpu_used_pct", g.last.cpu_percent);
	json_put_int(&w, "mem_total", view.resources.memory);
	json_put_int(&w, "mem_used", usage->memory);
	json_put_int(&w, "mem_cache", 0);
	json_put_int(&w, "mem_total_mib", view.resources.memory / MIB);
	json_put_int(&w, "mem_used_mib", usage->memory / MIB);
	json_put_int(&w, "disk_used", usage->disk < 0 ? 0 : usage->disk);
	json_put_int(&w, "disk_total", view.resources.disk);
	json_end_object(&w);
	e2b_respond_json(call->req, 200, &body);
}

static void handle_now(struct http_request *req)
{
	struct sandbox *s = envd_sandbox(req);
	struct metrics_call *call = call_new(req, s);
	call->answer = answer_now;
	usage_measure(s, call_measured, call);
}

static const struct http_route envd_routes[] = {
	{HTTP_GET, "/metrics", handle_now, 0},
};

const struct route_table envd_metrics_table = ROUTE_TABLE(envd_routes);
