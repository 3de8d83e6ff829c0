/* GET /sandbox/sandboxes/{id}/events: what happened to a sandbox, also after its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "box/sandbox/event.h"
#include "dialect/agentuity/routes.h"

#define LIST_DEFAULT 50
#define LIST_MAX     100

/* The words that Agentuity's own service uses; the others are lifecycle:WORD. */
static void put_type(struct json_writer *w, const char *type)
{
	char text[64];
	if (strcmp(type, "created") == 0)
		snprintf(text, sizeof text, "create");
	else if (strcmp(type, "deleted") == 0)
		snprintf(text, sizeof text, "destroy");
	else
		snprintf(text, sizeof text, "lifecycle:%s", type);
	json_put_string(w, "type", text);
}

static void put_event(struct json_writer *w, const char *sandbox, const struct event_view *v)
{
	char id[ID_SIZE + 32];
	snprintf(id, sizeof id, "evt_%s_%llu", sandbox, (unsigned long long)v->number);
	json_begin_object(w);
	json_put_string(w, "eventId", id);
	agentuity_put_id(w, "sandboxId", "sbx_", sandbox);
	put_type(w, v->type);
	json_put_time(w, "createdAt", v->time_ms);
	json_key(w, "event");
	json_begin_object(w);
	json_put_string(w, "type", v->type);
	json_put_string(w, "cause", v->cause);
	for (size_t at = 0; at < v->details_len; at += strlen(v->details + at) + 1) {
		char name[64];
		const char *entry = v->details + at, *equals = strchr(entry, '=');
		if (!equals)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(equals - entry), entry);
		json_put_string(w, name, equals + 1);
	}
	json_end_object(w);
	json_end_object(w);
}

struct events_call {
	struct http_request *req; /* NULL once the client has gone */
	char sandbox_id[ID_SIZE];
};

static void aborted(void *arg)
{
	((struct events_call *)arg)->req = NULL;
}

static void respond(struct events_call *call, const struct event_view *events, size_t count)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_key(&w, "events");
	json_begin_array(&w);
	for (size_t i = 0; i < count; i++)
		put_event(&w, call->sandbox_id, &events[i]);
	json_end_array(&w);
	json_end_object(&w);
	agentuity_respond_data(call->req, 200, &w);
}

/* Each sandbox has events, so it is known by them. */
static void listed(void *arg, const struct event_view *events, size_t count)
{
	struct events_call *call = arg;
	struct error e;
	if (call->req && !events) {
		error_set(&e, ERROR_INTERNAL, "the events could not be read");
		http_respond_error(call->req, &e);
	} else if (call->req && count == 0) {
		agentuity_respond_failure(
			call->req, 200, "SANDBOX_NOT_FOUND", "there is no such sandbox");
	} else if (call->req) {
		respond(call, events, count);
	}
	free(call);
}

static void handle_list(struct http_request *req)
{
	static const char *const directions[] = {"asc", "desc", NULL};
	struct error e;
	int64_t limit = LIST_DEFAULT;
	int direction;
	char id[ID_SIZE];
	if (query_optional_number(req, "limit", 1, LIST_MAX, &limit, &e) < 0 ||
		agentuity_query_word(req, "direction", directions, &direction, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	if (!agentuity_parse_id(http_param(req, "id"), "sbx_", id)) {
		agentuity_respond_failure(
			req, 200, "SANDBOX_NOT_FOUND", "there is no such sandbox");
		return;
	}
	struct events_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	memcpy(call->sandbox_id, id, ID_SIZE);
	http_on_abort(req, aborted, call);
	event_list(server_of(req)->box, tenant_of(req), call->sandbox_id, 0, direction == 1,
		(unsigned)limit, listed, call);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/sandboxes/{id}/events", handle_list, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_event_table = ROUTE_TABLE(routes);
