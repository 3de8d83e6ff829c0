/*
 * /v1/sandboxes/{id}/usage and /metrics: what a sandbox has used, and its recent history;
 * /v1/quota: what the tenant may have and has.
 */
#include <stdlib.h>

#include "api/routes.h"
#include "base/units.h"
#include "op/usage.h"

/* ---- usage ---- */

static void put_totals(struct json_writer *w, const struct sandbox_view *view, int64_t cpu_us,
	int64_t memory_byte_seconds)
{
	json_put_int(w, "cpuTimeMs", cpu_us / 1000);
	json_put_int(w, "memoryByteSeconds", memory_byte_seconds);
	json_put_int(w, "networkBytesIn", view->network_in);
	json_put_int(w, "networkBytesOut", view->network_out);
}

static int usage_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_ROW)
		return 0;
	const struct sandbox_view *view = event->used->sandbox;
	const struct usage_view *now = event->used->now;
	json_begin_object(&w);
	put_totals(&w, view, now ? now->cpu_us : view->cpu_us,
		now ? now->memory_byte_seconds : view->memory_byte_seconds);
	if (now) {
		json_put_int(&w, "memoryBytes", now->memory);
		json_put_int(&w, "pids", now->pids);
	}
	if (now && now->disk >= 0)
		json_put_int(&w, "diskBytes", now->disk);
	if (!now)
		json_put_time(&w, "endedAt", view->ended_ms);
	json_end_object(&w);
	return 0;
}

static void handle_usage(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = usage_put};
	struct answer *a = api_answer(req, &form);
	a->call.takes_ended = true;
	a->op = op_usage(&a->call, &(struct op_usage){.measures = true});
	answer_run(a);
}

/* ---- history ---- */

static void put_sample(struct json_writer *w, const struct usage_sample *sample)
{
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

struct sample_range {
	int64_t begin_ms, end_ms;
};

static int samples_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct sample_range *range = a->own;
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_ROW)
		return 0;
	const struct usage_report *report = event->used;
	const struct resources *limits = &report->sandbox->resources;
	json_begin_object(&w);
	json_put_int(&w, "cpuMillicores", limits->cpu);
	json_put_int(&w, "memoryLimitBytes", limits->memory);
	if (limits->disk)
		json_put_int(&w, "diskLimitBytes", limits->disk);
	json_key(&w, "samples");
	json_begin_array(&w);
	for (size_t i = 0; i < report->sample_count; i++) {
		int64_t ms = report->samples[i].time_ms;
		if (ms >= range->begin_ms && ms <= range->end_ms)
			put_sample(&w, &report->samples[i]);
	}
	json_end_array(&w);
	json_end_object(&w);
	return 0;
}

static void api_usage_handle_metrics(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct sample_range),
		.put = samples_put};
	struct error e;
	struct answer *a = api_answer(req, &form);
	struct sample_range *range = a->own;
	range->end_ms = INT64_MAX;
	if (parse_time(req, "start", &range->begin_ms, &e) < 0 ||
		parse_time(req, "end", &range->end_ms, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_usage(&a->call, &(struct op_usage){0});
	answer_run(a);
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

static int quota_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	const struct tenant_amounts *used = event->quota.used, *limit = event->quota.limit;
	(void)e;
	json_begin_object(&w);
	json_put_string(&w, "tenant", a->call.tenant);
	json_key(&w, "sandboxes");
	json_begin_object(&w);
	json_put_int(&w, "used", used->sandboxes);
	json_put_int(&w, "limit", limit->sandboxes);
	json_end_object(&w);
	put_amount(&w, "cpu", used->cpu, limit->cpu, units_format_millicores);
	put_amount(&w, "memory", used->memory, limit->memory, units_format_size);
	put_amount(&w, "disk", used->disk, limit->disk, units_format_size);
	json_end_object(&w);
	return 0;
}

static void handle_quota(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = quota_put};
	struct answer *a = api_answer(req, &form);
	a->op = op_quota(&a->call);
	answer_run(a);
}

static const struct http_route usage_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/usage", handle_usage, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/metrics", api_usage_handle_metrics, 0},
	{HTTP_GET, "/v1/quota", handle_quota, 0},
};

const struct route_table usage_table = ROUTE_TABLE(usage_routes);
