/*
 * What happened to a sandbox, as E2B's logs: /sandboxes/{id}/logs and /v2/sandboxes/{id}/logs. Each
 * line is an event of the core's; what commands print is theirs, and is not kept here.
 */
#include <stdlib.h>
#include <string.h>

#include "box/event.h"
#include "dialect/e2b/decode.h"
#include "dialect/e2b/place.h"

#define LIMIT_DEFAULT 1000
#define LIMIT_MAX     1000

struct logs_call {
	struct http_request *req; /* NULL once the client has gone */
	const struct e2b *dialect;
	const char *tenant;
	char id[ID_SIZE];
	bool is_v2, backwards;
	int64_t limit, cursor_ms; /* -1: no cursor */
	char *level, *search;
};

static void call_free(struct logs_call *call)
{
	free(call->level);
	free(call->search);
	free(call);
}

static void call_aborted(void *arg)
{
	((struct logs_call *)arg)->req = NULL;
}

/* ---- lines ---- */

static const char *level_of(const struct event_view *event)
{
	return strcmp(event->type, "failed") == 0 || strcmp(event->type, "oom") == 0 ? "error"
										     : "info";
}

static void format_message(const struct event_view *event, struct buf *out)
{
	buf_append_str(out, "sandbox ");
	buf_append_str(out, event->type);
	buf_append_str(out, ", by ");
	buf_append_str(out, event->cause);
	buf_append_char(out, '\0');
}

static void put_fields(struct json_writer *w, const struct event_view *event)
{
	json_key(w, "fields");
	json_begin_object(w);
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
	json_end_object(w);
}

static bool is_wanted(
	const struct logs_call *call, const struct event_view *event, const char *message)
{
	if (call->cursor_ms >= 0 && (call->backwards ? event->time_ms > call->cursor_ms
						     : event->time_ms < call->cursor_ms))
		return false;
	if (call->level && call->level[0] && strcmp(call->level, level_of(event)) != 0)
		return false;
	return !call->search || !call->search[0] || strstr(message, call->search);
}

static void put_entries(struct json_writer *w, struct logs_call *call,
	const struct event_view *events, size_t count, bool as_lines)
{
	int64_t left = call->limit;
	json_begin_array(w);
	for (size_t i = 0; i < count && left > 0; i++) {
		autobuf message = {0};
		format_message(&events[i], &message);
		if (message.failed || !is_wanted(call, &events[i], message.data))
			continue;
		left--;
		json_begin_object(w);
		json_put_time(w, "timestamp", events[i].time_ms);
		if (as_lines) {
			json_put_string(w, "line", message.data);
		} else {
			json_put_string(w, "level", level_of(&events[i]));
			json_put_string(w, "message", message.data);
			put_fields(w, &events[i]);
		}
		json_end_object(w);
	}
	json_end_array(w);
}

static void events_listed(void *arg, const struct event_view *events, size_t count)
{
	struct logs_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct error e;
	if (call->req && !events && count > 0) {
		error_set(&e, ERROR_INTERNAL, "the events cannot be read");
		http_respond_error(call->req, &e);
	} else if (call->req) {
		json_begin_object(&w);
		json_key(&w, "logs");
		put_entries(&w, call, events, count, !call->is_v2);
		if (!call->is_v2) {
			json_key(&w, "logEntries");
			put_entries(&w, call, events, count, false);
		}
		json_end_object(&w);
		e2b_respond_json(call->req, 200, &body);
	}
	call_free(call);
}

/* ---- the request ---- */

/* Its events are kept longer than it lives. */
static void sandbox_loaded(void *arg, const struct sandbox_view *view)
{
	struct logs_call *call = arg;
	struct error e;
	if (view) {
		event_list(call->dialect->box, call->tenant, call->id, 0, call->backwards,
			LIMIT_MAX, events_listed, call);
		return;
	}
	error_set(&e, ERROR_NOT_FOUND, "sandbox \"%s\" not found", call->id);
	if (call->req)
		http_respond_error(call->req, &e);
	call_free(call);
}

static int64_t cursor_of(const struct http_request *req)
{
	const char *text = http_query(req, "cursor");
	if (!text)
		text = http_query(req, "start");
	size_t len = text ? strlen(text) : 0;
	return len > 0 && len < 16 && strspn(text, "0123456789") == len ? strtoll(text, NULL, 10)
									: -1;
}

static void handle(struct http_request *req, bool is_v2)
{
	struct error e = {0};
	struct sandbox_view view;
	const char *name = http_param(req, "id"), *direction = http_query(req, "direction");
	struct logs_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	*call = (struct logs_call){.req = req,
		.dialect = e2b_of(req),
		.tenant = e2b_tenant(req),
		.is_v2 = is_v2,
		.backwards = direction && strcmp(direction, "backward") == 0,
		.limit = LIMIT_DEFAULT,
		.cursor_ms = cursor_of(req)};
	bool named = e2b_parse_id(name, call->id);
	if (!named)
		error_set(&e, ERROR_NOT_FOUND, "sandbox \"%.64s\" not found", name);
	if (!named || e2b_query_limit(req, LIMIT_MAX, &call->limit, &e) < 0) {
		call_free(call);
		http_respond_error(req, &e);
		return;
	}
	call->level = e2b_copy(http_query(req, "level"));
	call->search = e2b_copy(http_query(req, "search"));
	http_on_abort(req, call_aborted, call);
	struct sandbox *s = sandbox_find(call->dialect->box, call->tenant, call->id);
	if (s) {
		sandbox_view(s, &view);
		sandbox_loaded(call, &view);
	} else {
		sandbox_load_ended(
			call->dialect->box, call->tenant, call->id, sandbox_loaded, call);
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

const struct e2b_table e2b_logs_table = E2B_TABLE(routes);
