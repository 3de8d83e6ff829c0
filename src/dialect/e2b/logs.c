/*
 * What happened to a sandbox, as E2B's logs: /sandboxes/{id}/logs and /v2/sandboxes/{id}/logs. Each
 * line is an event of the core's; what commands print is theirs, and is not kept here.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/decode.h"
#include "op/history.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX     1000

/* In the order of their weight. */
static const char *const levels[] = {"debug", "info", "warn", "error"};
enum {
	LEVEL_DEBUG,
	LEVEL_INFO,
	LEVEL_WARN,
	LEVEL_ERROR
};

struct log_query {
	bool is_v2, backwards;
	int64_t left, cursor_ms;   /* entries that may still be told; -1: no cursor */
	size_t level;              /* the least that is told */
	const char *search;        /* NULL: none */
	struct buf lines, entries; /* what was found, in the form of v1 and in that of v2 */
	struct json_writer line_writer, entry_writer;
};

/* ---- entries ---- */

static size_t logs_level_of(const struct event_view *event)
{
	bool is_bad = strcmp(event->type, "failed") == 0 || strcmp(event->type, "oom") == 0;
	return is_bad ? LEVEL_ERROR : LEVEL_INFO;
}

static void format_message(const struct event_view *event, struct buf *out)
{
	buf_append_str(out, "sandbox ");
	buf_append_str(out, event->type);
	buf_append_str(out, ", by ");
	buf_append_str(out, event->cause);
	buf_append_char(out, '\0');
}

/* The members of an object. */
static void logs_put_fields(struct json_writer *w, const struct event_view *event)
{
	json_put_string(w, "cause", event->cause);
	json_env_members(w, event->details.data, event->details.len);
}

/* A line is an object, too, as a text: clients take it apart again. */
static void logs_put_line(
	struct json_writer *w, const struct event_view *event, const char *message)
{
	autobuf line = {0};
	struct json_writer inner = {.out = &line};
	json_begin_object(&inner);
	json_put_string(&inner, "level", levels[logs_level_of(event)]);
	json_put_string(&inner, "logger", "sandbox");
	json_put_string(&inner, "message", message);
	logs_put_fields(&inner, event);
	json_end_object(&inner);
	json_begin_object(w);
	json_put_time(w, "timestamp", event->time_ms);
	json_key(w, "line");
	json_string_n(w, line.data, line.failed ? 0 : line.len);
	json_end_object(w);
}

static void logs_put_entry(
	struct json_writer *w, const struct event_view *event, const char *message)
{
	json_begin_object(w);
	json_put_time(w, "timestamp", event->time_ms);
	json_put_string(w, "level", levels[logs_level_of(event)]);
	json_put_string(w, "message", message);
	json_key(w, "fields");
	json_begin_object(w);
	logs_put_fields(w, event);
	json_end_object(w);
	json_end_object(w);
}

static bool is_wanted(
	const struct log_query *q, const struct event_view *event, const char *message)
{
	if (q->cursor_ms >= 0 &&
		(q->backwards ? event->time_ms > q->cursor_ms : event->time_ms < q->cursor_ms))
		return false;
	if (logs_level_of(event) < q->level)
		return false;
	return !q->search || !q->search[0] || strstr(message, q->search);
}

static void add_event(struct log_query *q, const struct event_view *event)
{
	autobuf message = {0};
	format_message(event, &message);
	if (q->left == 0 || message.failed || !is_wanted(q, event, message.data))
		return;
	q->left--;
	logs_put_line(&q->line_writer, event, message.data);
	logs_put_entry(&q->entry_writer, event, message.data);
}

/* ---- the answer ---- */

static int log_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct log_query *q = a->own;
	struct json_writer w = {.out = &a->out};
	if (event->kind == OP_ROW)
		add_event(q, event->happened);
	if (event->kind != OP_DONE)
		return 0;
	if (q->lines.failed || q->entries.failed)
		return error_set(e, ERROR_INTERNAL, "the events cannot be read");
	json_end_array(&q->line_writer);
	json_end_array(&q->entry_writer);
	json_begin_object(&w);
	json_key(&w, "logs");
	if (q->is_v2) {
		json_raw_n(&w, q->entries.data, q->entries.len);
	} else {
		json_raw_n(&w, q->lines.data, q->lines.len);
		json_key(&w, "logEntries");
		json_raw_n(&w, q->entries.data, q->entries.len);
	}
	json_end_object(&w);
	return 0;
}

static void log_finish(struct answer *a)
{
	struct log_query *q = a->own;
	buf_finish(&q->lines);
	buf_finish(&q->entries);
}

/* ---- the request ---- */

static int parse_cursor(const struct http_request *req, int64_t *ret, struct error *e)
{
	const char *name = http_query(req, "cursor") ? "cursor" : "start";
	const char *text = http_query(req, name);
	size_t len = text ? strlen(text) : 0;
	*ret = -1;
	if (len == 0)
		return 0;
	if (len > 15 || strspn(text, "0123456789") != len)
		return error_set_field(
			e, ERROR_INVALID_FIELD, name, "\"%s\" is a time in milliseconds", name);
	*ret = strtoll(text, NULL, 10);
	return 0;
}

static int parse_level(const struct http_request *req, size_t *ret, struct error *e)
{
	const char *text = http_query(req, "level");
	*ret = LEVEL_DEBUG;
	if (!text || !text[0])
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		if (strcmp(text, levels[i]) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return error_set_field(
		e, ERROR_INVALID_FIELD, "level", "\"level\" is debug, info, warn or error");
}

static int parse_direction(const struct http_request *req, bool *backwards, struct error *e)
{
	const char *text = http_query(req, "direction");
	*backwards = text && strcmp(text, "backward") == 0;
	if (!text || !text[0] || *backwards || strcmp(text, "forward") == 0)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "direction", "\"direction\" is forward or backward");
}

static int logs_parse_query(const struct http_request *req, struct log_query *q, struct error *e)
{
	q->left = LIMIT_DEFAULT;
	q->search = http_query(req, "search");
	if (query_optional_number(req, "limit", 1, LIMIT_MAX, &q->left, e) < 0 ||
		parse_cursor(req, &q->cursor_ms, e) < 0 || parse_level(req, &q->level, e) < 0)
		return -1;
	return parse_direction(req, &q->backwards, e);
}

/* Events are kept longer than their sandbox lives. */
static void log_run(struct http_request *req, bool is_v2)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct log_query),
		.put = log_put,
		.fail = e2b_fail,
		.finish = log_finish};
	struct error e = {0};
	struct answer *a = e2b_answer(req, &form);
	struct log_query *q = a->own;
	a->call.takes_ended = true;
	q->is_v2 = is_v2;
	q->line_writer.out = &q->lines;
	q->entry_writer.out = &q->entries;
	json_begin_array(&q->line_writer);
	json_begin_array(&q->entry_writer);
	if (logs_parse_query(req, q, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_history(&a->call, &(struct op_history){.backwards = q->backwards});
	answer_run(a);
}

static void handle_v1(struct http_request *req)
{
	log_run(req, false);
}

static void handle_v2(struct http_request *req)
{
	log_run(req, true);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/sandboxes/{id}/logs", handle_v1, 0},
	{HTTP_GET, "/v2/sandboxes/{id}/logs", handle_v2, 0},
};

const struct route_table e2b_logs_table = ROUTE_TABLE(routes);
