/*
 * What happened to a sandbox, as E2B's logs: /sandboxes/{id}/logs and /v2/sandboxes/{id}/logs. Each
 * line is an event of the core's; what commands print is theirs, and is not kept here.
 */
#include <stdlib.h>
#include <string.h>

#include "box/sandbox/event.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/access.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX     1000
#define PAGE          500

/* In the order of their weight. */
static const char *const levels[] = {"debug", "info", "warn", "error"};
enum {
	LEVEL_DEBUG,
	LEVEL_INFO,
	LEVEL_WARN,
	LEVEL_ERROR
};

struct logs_call {
	struct http_request *req; /* NULL once the client has gone */
	const struct server *server;
	const char *tenant;
	char id[ID_SIZE];
	bool is_v2, backwards;
	int64_t left, cursor_ms; /* entries that may still be told; -1: no cursor */
	size_t level;            /* the least that is told */
	char *search;
	struct buf lines, entries; /* what was found, in the form of v1 and in that of v2 */
	struct json_writer line_writer, entry_writer;
};

static void call_free(struct logs_call *call)
{
	buf_finish(&call->lines);
	buf_finish(&call->entries);
	free(call->search);
	free(call);
}

static void call_aborted(void *arg)
{
	((struct logs_call *)arg)->req = NULL;
}

/* ---- entries ---- */

static size_t level_of(const struct event_view *event)
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
static void put_fields(struct json_writer *w, const struct event_view *event)
{
	json_put_string(w, "cause", event->cause);
	for (size_t at = 0; at < event->details_len; at += strlen(event->details + at) + 1) {
		const char *entry = event->details + at;
		autobuf name = {0};
		size_t len = strcspn(entry, "=");
		buf_append(&name, entry, len);
		buf_append_char(&name, '\0');
		if (!name.failed)
			json_put_string(w, name.data, entry + len + (entry[len] == '='));
	}
}

/* A line is an object, too, as a text: clients take it apart again. */
static void put_line(struct json_writer *w, const struct event_view *event, const char *message)
{
	autobuf line = {0};
	struct json_writer inner = {.out = &line};
	json_begin_object(&inner);
	json_put_string(&inner, "level", levels[level_of(event)]);
	json_put_string(&inner, "logger", "sandbox");
	json_put_string(&inner, "message", message);
	put_fields(&inner, event);
	json_end_object(&inner);
	json_begin_object(w);
	json_put_time(w, "timestamp", event->time_ms);
	json_key(w, "line");
	json_string_n(w, line.data, line.failed ? 0 : line.len);
	json_end_object(w);
}

static void put_entry(struct json_writer *w, const struct event_view *event, const char *message)
{
	json_begin_object(w);
	json_put_time(w, "timestamp", event->time_ms);
	json_put_string(w, "level", levels[level_of(event)]);
	json_put_string(w, "message", message);
	json_key(w, "fields");
	json_begin_object(w);
	put_fields(w, event);
	json_end_object(w);
	json_end_object(w);
}

static bool is_wanted(
	const struct logs_call *call, const struct event_view *event, const char *message)
{
	if (call->cursor_ms >= 0 && (call->backwards ? event->time_ms > call->cursor_ms
						     : event->time_ms < call->cursor_ms))
		return false;
	if (level_of(event) < call->level)
		return false;
	return !call->search || !call->search[0] || strstr(message, call->search);
}

static void add_event(struct logs_call *call, const struct event_view *event)
{
	autobuf message = {0};
	format_message(event, &message);
	if (call->left == 0 || message.failed || !is_wanted(call, event, message.data))
		return;
	call->left--;
	put_line(&call->line_writer, event, message.data);
	put_entry(&call->entry_writer, event, message.data);
}

/* ---- the answer ---- */

static void respond(struct logs_call *call)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_end_array(&call->line_writer);
	json_end_array(&call->entry_writer);
	json_begin_object(&w);
	json_key(&w, "logs");
	if (call->is_v2) {
		json_raw_n(&w, call->entries.data, call->entries.len);
	} else {
		json_raw_n(&w, call->lines.data, call->lines.len);
		json_key(&w, "logEntries");
		json_raw_n(&w, call->entries.data, call->entries.len);
	}
	json_end_object(&w);
	e2b_respond_json(call->req, 200, &body);
}

static void events_listed(void *arg, const struct event_view *events, size_t count)
{
	struct logs_call *call = arg;
	struct error e;
	for (size_t i = 0; call->req && i < count; i++)
		add_event(call, &events[i]);
	if (call->req && events && count == PAGE && call->left > 0) {
		event_list(call->server->box, call->tenant, call->id, events[count - 1].number,
			call->backwards, PAGE, events_listed, call);
		return;
	}
	if (call->req && (!events || call->lines.failed || call->entries.failed)) {
		error_set(&e, ERROR_INTERNAL, "the events cannot be read");
		http_respond_error(call->req, &e);
	} else if (call->req) {
		respond(call);
	}
	call_free(call);
}

/* Its events are kept longer than it lives. */
static void sandbox_loaded(void *arg, const struct sandbox_view *view)
{
	struct logs_call *call = arg;
	struct error e;
	if (view) {
		event_list(call->server->box, call->tenant, call->id, 0, call->backwards, PAGE,
			events_listed, call);
		return;
	}
	error_set(&e, ERROR_NOT_FOUND, "sandbox \"%s\" not found", call->id);
	if (call->req)
		http_respond_error(call->req, &e);
	call_free(call);
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

static int parse_request(struct logs_call *call, struct error *e)
{
	const struct http_request *req = call->req;
	const char *name = http_param(req, "id");
	if (!destination_parse_id(name, call->id))
		return error_set(e, ERROR_NOT_FOUND, "sandbox \"%.64s\" not found", name);
	if (query_optional_number(req, "limit", 1, LIMIT_MAX, &call->left, e) < 0 ||
		parse_cursor(req, &call->cursor_ms, e) < 0 ||
		parse_level(req, &call->level, e) < 0 ||
		parse_direction(req, &call->backwards, e) < 0)
		return -1;
	call->search = e2b_copy(http_query(req, "search"));
	return 0;
}

static void handle(struct http_request *req, bool is_v2)
{
	struct error e = {0};
	struct sandbox_view view;
	struct logs_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	*call = (struct logs_call){.req = req,
		.server = server_of(req),
		.tenant = tenant_of(req),
		.is_v2 = is_v2,
		.left = LIMIT_DEFAULT};
	call->line_writer.out = &call->lines;
	call->entry_writer.out = &call->entries;
	json_begin_array(&call->line_writer);
	json_begin_array(&call->entry_writer);
	if (parse_request(call, &e) < 0) {
		call_free(call);
		http_respond_error(req, &e);
		return;
	}
	http_on_abort(req, call_aborted, call);
	struct sandbox *s = sandbox_find(call->server->box, call->tenant, call->id);
	if (s) {
		sandbox_view(s, &view);
		sandbox_loaded(call, &view);
	} else {
		sandbox_load_ended(call->server->box, call->tenant, call->id, sandbox_loaded, call);
	}
}

static void handle_v1(struct http_request *req)
{
	handle(req, false);
}

static void handle_v2(struct http_request *req)
{
	handle(req, true);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/sandboxes/{id}/logs", handle_v1, 0},
	{HTTP_GET, "/v2/sandboxes/{id}/logs", handle_v2, 0},
};

const struct route_table e2b_logs_table = ROUTE_TABLE(routes);
