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
#include "dialect/e2b/aliases.h"
#include "dialect/e2b/envd.h"
#include "op/usage.h"

#define IDS_MAX 100

/* ---- one item ---- */

/* Samples as they come, each seen from the one before. */
struct gauging {
	const struct resources *limits;
	int64_t begin_ms, end_ms;
	int64_t last_ms, last_cpu_us; /* 0: none yet */
	struct json_writer *json;     /* NULL: only the last one is wanted */
	struct e2b_gauge last;
};

static void metrics_take(
	struct gauging *g, int64_t time_ms, int64_t cpu_us, int64_t memory, int64_t disk)
{
	double percent = 0;
	if (g->last_ms && time_ms > g->last_ms && g->limits->cpu > 0)
		percent = (double)(cpu_us - g->last_cpu_us) /
			  ((double)(time_ms - g->last_ms) * (double)g->limits->cpu) * 100;
	g->last_ms = time_ms;
	g->last_cpu_us = cpu_us;
	g->last = (struct e2b_gauge){.time_ms = time_ms,
		.cpu_percent = percent < 0 ? 0 : percent,
		.memory = memory,
		.disk = disk < 0 ? 0 : disk,
		.limits = *g->limits};
	if (g->json && time_ms >= g->begin_ms && time_ms <= g->end_ms)
		json_encode_alias_object(g->json, &e2b_gauge_told, &g->last);
}

static void take_samples(struct gauging *g, const struct usage_report *report)
{
	const struct usage_sample *s = report->samples;
	for (size_t i = 0; i < report->sample_count; i++, s++)
		metrics_take(g, s->time_ms, s->cpu_us, s->memory, s->disk);
	if (report->now)
		metrics_take(g, clock_wall_ms(), report->now->cpu_us, report->now->memory,
			report->now->disk);
}

/* ---- GET /sandboxes/{id}/metrics ---- */

struct metrics_range {
	int64_t begin_ms, end_ms;
};

/* Of one that has ended there is nothing to tell any more, which is no mistake of the caller's. */
static int metrics_put_history(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct metrics_range *range = a->own;
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_ROW)
		return 0;
	const struct sandbox_view *view = event->used->sandbox;
	struct gauging g = {.limits = &view->resources,
		.begin_ms = range->begin_ms,
		.end_ms = range->end_ms,
		.json = &w};
	json_begin_array(&w);
	take_samples(&g, event->used);
	json_end_array(&w);
	return 0;
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
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct metrics_range),
		.put = metrics_put_history,
		.fail = e2b_fail};
	struct error e;
	struct answer *a = e2b_answer(req, &form);
	struct metrics_range *range = a->own;
	range->end_ms = INT64_MAX;
	if (parse_second(req, "start", &range->begin_ms, &e) < 0 ||
		parse_second(req, "end", &range->end_ms, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	/* A second has not ended before the next one begins. */
	if (range->end_ms != INT64_MAX)
		range->end_ms += 999;
	a->call.takes_ended = true;
	a->op = op_usage(&a->call, &(struct op_usage){.measures = true});
	answer_run(a);
}

/* ---- GET /sandboxes/metrics?sandbox_ids=a,b ---- */

static int metrics_put_latest(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		const struct sandbox_view *view = event->used->sandbox;
		struct gauging g = {.limits = &view->resources};
		take_samples(&g, event->used);
		if (!g.last_ms)
			return 0;
		json_key(w, view->id);
		json_encode_alias_object(w, &e2b_gauge_told, &g.last);
	} else if (event->kind == OP_DONE) {
		json_end_object(w);
		json_end_object(w);
	}
	return 0;
}

static size_t split_ids(struct http_request *req, const char *ids[IDS_MAX])
{
	size_t count = 0;
	char *state = NULL, *text = http_copy(req, http_query(req, "sandbox_ids"));
	for (char *name = text ? strtok_r(text, ",", &state) : NULL; name && count < IDS_MAX;
		name = strtok_r(NULL, ",", &state)) {
		char *id = http_alloc(req, ID_SIZE);
		if (id && destination_parse_id(name, id))
			ids[count++] = id;
	}
	return count;
}

static void handle_many(struct http_request *req)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = metrics_put_latest};
	const char *ids[IDS_MAX];
	struct answer *a = answer_new(req, &form);
	struct json_writer *w = a->own;
	w->out = &a->out;
	json_begin_object(w);
	json_key(w, "sandboxes");
	json_begin_object(w);
	a->op = op_usages(&a->call, &(struct op_usages){ids, split_ids(req, ids)});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/sandboxes/{id}/metrics", handle_history, 0},
	{HTTP_GET, "/sandboxes/metrics", handle_many, 0},
};

const struct route_table e2b_metrics_table = ROUTE_TABLE(routes);

/* ---- envd's GET /metrics ---- */

static int metrics_put_now(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_ROW)
		return 0;
	struct gauging g = {.limits = &event->used->sandbox->resources};
	take_samples(&g, event->used);
	json_encode_alias_object(&w, &e2b_gauge_by_envd, &g.last);
	return 0;
}

static void handle_now(struct http_request *req)
{
	static const struct answer_form form = {
		.type = E2B_JSON, .pace = ANSWER_WHOLE, .put = metrics_put_now};
	struct answer *a = envd_answer(req, &form);
	a->op = op_usage(&a->call, &(struct op_usage){.measures = true});
	answer_run(a);
}

static const struct http_route envd_routes[] = {
	{HTTP_GET, "/metrics", handle_now, 0},
};

const struct route_table envd_metrics_table = ROUTE_TABLE(envd_routes);
