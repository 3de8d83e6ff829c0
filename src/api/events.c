/*
 * /v1/sandboxes/{id}/events: what happened to a sandbox, also after its end. One page as JSON; or,
 * by `Accept`, everything so far and then whatever comes, until the sandbox has ended.
 *
 * A stream reads from the store what is behind the last event it has sent, whenever the client
 * takes more and whenever there is news. So nothing is missed or told twice, and a slow client
 * costs nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/routes.h"
#include "api/stream.h"
#include "box/sandbox/event.h"

#define LIMIT_DEFAULT 50
#define LIMIT_MAX     1000
#define KEEPALIVE_MS  30000

struct events_call {
	struct http_request *req; /* NULL once the client has gone */
	struct box *box;
	const char *tenant;
	char sandbox_id[ID_SIZE];
	uint64_t after;
	unsigned limit;
	bool backwards;
	enum stream_format format;
	/* Of a stream: */
	struct event_watcher watcher;
	uv_timer_t keepalive;
	bool streaming;
	bool hungry;  /* the client can take more */
	bool reading; /* the store has been asked */
	bool news;    /* there may be more in the store than we have read */
};

static void encode_details(struct json_writer *w, const struct event_view *v)
{
	json_key(w, "details");
	json_begin_object(w);
	for (size_t at = 0; at < v->details_len; at += strlen(v->details + at) + 1) {
		const char *entry = v->details + at, *equals = strchr(entry, '=');
		char name[64];
		if (!equals)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(equals - entry), entry);
		json_put_string(w, name, equals + 1);
	}
	json_end_object(w);
}

static void encode_event(struct json_writer *w, const char *sandbox, const struct event_view *v)
{
	json_begin_object(w);
	json_put_int(w, "number", (int64_t)v->number);
	json_put_string(w, "sandboxId", sandbox);
	json_put_string(w, "type", v->type);
	json_put_string(w, "cause", v->cause);
	json_put_time(w, "createdAt", v->time_ms);
	encode_details(w, v);
	json_end_object(w);
}

/* ---- the end of a call ---- */

static void call_free(uv_handle_t *handle)
{
	free(handle->data);
}

static void call_end(struct events_call *call)
{
	if (call->streaming)
		event_unwatch(call->box, &call->watcher);
	call->streaming = false;
	uv_close((uv_handle_t *)&call->keepalive, call_free);
}

/* If the store has been asked, its answer finds that nobody listens. */
static void call_aborted(void *arg)
{
	struct events_call *call = arg;
	call->req = NULL;
	if (!call->reading)
		call_end(call);
}

static void call_fail(struct events_call *call, enum error_code code, const char *message)
{
	struct error e;
	error_set(&e, code, "%s", message);
	http_respond_error(call->req, &e);
	call_end(call);
}

/* ---- a page ---- */

static void respond_page(struct events_call *call, const struct event_view *events, size_t count)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	char cursor[24];
	json_begin_object(&w);
	json_key(&w, "events");
	json_begin_array(&w);
	for (size_t i = 0; i < count; i++)
		encode_event(&w, call->sandbox_id, &events[i]);
	json_end_array(&w);
	if (count == call->limit) {
		snprintf(cursor, sizeof cursor, "%llu",
			(unsigned long long)events[count - 1].number);
		json_put_string(&w, "nextCursor", cursor);
	}
	json_end_object(&w);
	api_respond_json(call->req, 200, &body);
	call_end(call);
}

/* ---- a stream ---- */

static void read_more(struct events_call *call);

static void append_event(struct events_call *call, const struct event_view *v, struct buf *out)
{
	struct json_writer w = {.out = out};
	if (call->format == STREAM_SSE)
		buf_printf(
			out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)v->number, v->type);
	encode_event(&w, call->sandbox_id, v);
	buf_append_str(out, call->format == STREAM_SSE ? "\n\n" : "\n");
}

static void send_events(struct events_call *call, const struct event_view *events, size_t count)
{
	struct http_request *req = call->req;
	struct buf out = {0};
	bool last = false;
	for (size_t i = 0; i < count; i++) {
		append_event(call, &events[i], &out);
		call->after = events[i].number;
		last |= event_is_last(events[i].type);
	}
	call->news |= count == call->limit;
	if (out.len == 0) {
		if (call->news)
			read_more(call);
		return;
	}
	call->hungry = false;
	if (last)
		call_end(call); /* first: a write may find that the client has gone */
	http_stream_write(req, &out);
	if (last)
		http_stream_end(req);
}

static void keepalive_due(uv_timer_t *timer)
{
	struct events_call *call = timer->data;
	struct buf out = {0};
	if (!call->req || !call->hungry)
		return;
	buf_append_str(&out,
		call->format == STREAM_SSE ? ": keepalive\n\n" : "{\"type\":\"keepalive\"}\n");
	call->hungry = false;
	http_stream_write(call->req, &out);
}

static void stream_proceed(void *arg)
{
	struct events_call *call = arg;
	call->hungry = true;
	if (call->news && !call->reading)
		read_more(call);
}

static void stream_changed(void *arg)
{
	struct events_call *call = arg;
	call->news = true;
	if (call->hungry && !call->reading)
		read_more(call);
}

static void begin_stream(struct events_call *call)
{
	const struct http_generator generator = {stream_proceed, call_aborted, call};
	call->streaming = call->news = true;
	call->watcher = (struct event_watcher){.changed = stream_changed, .arg = call};
	memcpy(call->watcher.sandbox, call->sandbox_id, ID_SIZE);
	event_watch(call->box, &call->watcher);
	uv_timer_start(&call->keepalive, keepalive_due, KEEPALIVE_MS, KEEPALIVE_MS);
	http_add_header(call->req, "Cache-Control", "no-store");
	http_stream_begin(call->req, 200, stream_content_type(call->format), &generator);
}

static void stream_fail(struct events_call *call)
{
	struct http_request *req = call->req;
	call_end(call);
	http_stream_abort(req);
}

/* ---- both ---- */

/* Each sandbox has events, so it is known by them. */
static void probed(void *arg, const struct event_view *events, size_t count)
{
	struct events_call *call = arg;
	call->reading = false;
	if (!call->req)
		call_end(call);
	else if (!events)
		call_fail(call, ERROR_INTERNAL, "the events could not be read");
	else if (count == 0)
		call_fail(call, ERROR_NOT_FOUND, "there is no such sandbox");
	else if (call->format != STREAM_NONE)
		begin_stream(call);
	else
		respond_page(call, events, 0);
}

static void probe(struct events_call *call)
{
	call->reading = true;
	event_list(call->box, call->tenant, call->sandbox_id, 0, false, 1, probed, call);
}

static void listed(void *arg, const struct event_view *events, size_t count)
{
	struct events_call *call = arg;
	call->reading = false;
	if (!call->req)
		call_end(call);
	else if (!events && call->streaming)
		stream_fail(call);
	else if (!events)
		call_fail(call, ERROR_INTERNAL, "the events could not be read");
	else if (call->streaming)
		send_events(call, events, count);
	else if (count == 0)
		probe(call);
	else
		respond_page(call, events, count);
}

static void read_more(struct events_call *call)
{
	call->reading = true;
	call->news = false;
	event_list(call->box, call->tenant, call->sandbox_id, call->after, call->backwards,
		call->limit, listed, call);
}

/* ---- the request ---- */

static int parse_number(
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

static int parse_query(struct http_request *req, struct events_call *call, struct error *e)
{
	const char *direction = http_query(req, "direction");
	const char *seen = http_header(req, "last-event-id");
	uint64_t limit = LIMIT_DEFAULT;
	call->backwards = direction && strcmp(direction, "desc") == 0;
	if (direction && !call->backwards && strcmp(direction, "asc") != 0)
		return error_set_field(e, ERROR_INVALID_FIELD, "direction",
			"\"direction\" must be 'asc' or 'desc'");
	if (parse_number(http_query(req, "limit"), "limit", LIMIT_MAX, &limit, e) < 0 ||
		parse_number(seen, "Last-Event-ID", INT64_MAX, &call->after, e) < 0 ||
		parse_number(http_query(req, "cursor"), "cursor", INT64_MAX, &call->after, e) < 0)
		return -1;
	if (limit == 0 || (call->backwards && call->format != STREAM_NONE))
		return error_set_field(e, ERROR_INVALID_FIELD, limit ? "direction" : "limit",
			limit ? "a stream goes forward only" : "\"limit\" must be at least 1");
	call->limit = (unsigned)limit;
	return 0;
}

static void handle_events(struct http_request *req)
{
	struct error e = {0};
	struct events_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->box = server_of(req)->box;
	call->tenant = tenant_of(req);
	call->format = stream_format_of(http_header(req, "accept"));
	const char *id = http_param(req, "id");
	if (id_is_valid(id))
		memcpy(call->sandbox_id, id, ID_SIZE);
	if (parse_query(req, call, &e) < 0) {
		http_respond_error(req, &e);
		free(call);
		return;
	}
	uv_timer_init(server_of(req)->loop, &call->keepalive);
	call->keepalive.data = call;
	http_on_abort(req, call_aborted, call);
	if (call->format != STREAM_NONE)
		probe(call);
	else
		read_more(call);
}

static const struct http_route event_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/events", handle_events, 0},
};

const struct route_table event_table = ROUTE_TABLE(event_routes);
