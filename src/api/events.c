/*
 * /v1/sandboxes/{id}/events: what happened to a sandbox, also after its end. One page as JSON; or,
 * by `Accept`, everything so far and then whatever comes, until the sandbox has ended.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "api/stream.h"
#include "op/history.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     1000
#define KEEPALIVE_MS  30000

/* ---- a page ---- */

struct event_page {
	struct json_writer json;
	uint64_t limit, last; /* last: the number of the event that was put last */
};

static void event_page_end(struct answer *a, uint64_t count)
{
	struct event_page *page = a->own;
	char cursor[24];
	json_end_array(&page->json);
	if (count == page->limit) {
		snprintf(cursor, sizeof cursor, "%llu", (unsigned long long)page->last);
		json_put_string(&page->json, "nextCursor", cursor);
	}
	json_end_object(&page->json);
}

static int event_page_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct event_page *page = a->own;
	(void)e;
	if (event->kind == OP_ROW) {
		page->last = event->happened->number;
		json_encode_object(&page->json, &event_model, event->happened, NULL);
	} else if (event->kind == OP_DONE) {
		event_page_end(a, event->result.count);
	}
	return 0;
}

static void event_page_begin(struct answer *a, unsigned limit)
{
	struct event_page *page = a->own;
	page->limit = limit;
	page->json.out = &a->out;
	json_begin_object(&page->json);
	json_key(&page->json, "events");
	json_begin_array(&page->json);
}

/* ---- a stream ---- */

struct event_stream {
	enum stream_format format;
};

static int event_stream_put(struct answer *a, const struct op_event *event, struct error *e)
{
	const struct event_stream *stream = a->own;
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_ROW)
		return 0;
	if (stream->format == STREAM_SSE)
		buf_printf(&a->out,
			"id: %llu\nevent: %s\ndata: ", (unsigned long long)event->happened->number,
			event->happened->type);
	json_encode_object(&w, &event_model, event->happened, NULL);
	buf_append_str(&a->out, stream->format == STREAM_SSE ? "\n\n" : "\n");
	return 0;
}

static void event_stream_head(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
}

static void event_stream_begin(struct answer *a, enum stream_format format)
{
	static const char comment[] = ": keepalive\n\n", line[] = "{\"type\":\"keepalive\"}\n";
	((struct event_stream *)a->own)->format = format;
	a->type = stream_content_type(format);
	if (format == STREAM_SSE)
		answer_keep_alive(a, comment, sizeof comment - 1, KEEPALIVE_MS);
	else
		answer_keep_alive(a, line, sizeof line - 1, KEEPALIVE_MS);
}

/* ---- the request ---- */

static int api_events_parse_number(
	const char *text, const char *field, uint64_t max, uint64_t *ret, struct error *e)
{
	char *end;
	if (!text)
		return 0;
	unsigned long long value = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || value > max)
		return error_set_field(e, ERROR_INVALID_FIELD, field,
			"\"%s\" must be a number of at most %llu", field, (unsigned long long)max);
	*ret = value;
	return 0;
}

static int parse_history(struct http_request *req, struct op_history *ret, struct error *e)
{
	const char *direction = http_query(req, "direction");
	const char *seen = http_header(req, "last-event-id");
	uint64_t limit = LIMIT_DEFAULT;
	ret->backwards = direction && strcmp(direction, "desc") == 0;
	if (direction && !ret->backwards && strcmp(direction, "asc") != 0)
		return error_set_field(e, ERROR_INVALID_FIELD, "direction",
			"\"direction\" must be 'asc' or 'desc'");
	if (api_events_parse_number(http_query(req, "limit"), "limit", LIMIT_MAX, &limit, e) < 0 ||
		api_events_parse_number(seen, "Last-Event-ID", INT64_MAX, &ret->after, e) < 0 ||
		api_events_parse_number(
			http_query(req, "cursor"), "cursor", INT64_MAX, &ret->after, e) < 0)
		return -1;
	if (limit == 0 || (ret->backwards && ret->follow))
		return error_set_field(e, ERROR_INVALID_FIELD, limit ? "direction" : "limit",
			limit ? "a stream goes forward only" : "\"limit\" must be at least 1");
	ret->limit = ret->follow ? 0 : (unsigned)limit;
	return 0;
}

static void api_events_handle_events(struct http_request *req)
{
	static const struct answer_form event_page_form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct event_page),
		.put = event_page_put};
	static const struct answer_form event_stream_form = {.pace = ANSWER_LIVE,
		.own_size = sizeof(struct event_stream),
		.put = event_stream_put,
		.head = event_stream_head};
	struct error e = {0};
	enum stream_format format = stream_format_of(http_header(req, "accept"));
	struct op_history history = {.follow = format != STREAM_NONE};
	struct answer *a = api_answer(req, history.follow ? &event_stream_form : &event_page_form);
	a->call.takes_ended = true;
	if (parse_history(req, &history, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	if (history.follow)
		event_stream_begin(a, format);
	else
		event_page_begin(a, history.limit);
	a->op = op_history(&a->call, &history);
	answer_run(a);
}

static const struct http_route event_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/events", api_events_handle_events, 0},
};

const struct route_table event_table = ROUTE_TABLE(event_routes);
