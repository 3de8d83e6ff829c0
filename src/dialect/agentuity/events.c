/* GET /sandbox/sandboxes/{id}/events: what happened to a sandbox, also after its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/routes.h"
#include "op/history.h"

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

static int event_list_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	(void)e;
	if (event->kind == OP_ROW)
		put_event(w, a->call.sandbox, event->happened);
	if (event->kind != OP_DONE)
		return 0;
	json_end_array(w);
	json_end_object(w);
	json_end_object(w);
	return 0;
}

static void agentuity_events_handle_list(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = event_list_put,
		.fail = agentuity_fail};
	static const char *const directions[] = {"asc", "desc", NULL};
	struct error e;
	int64_t limit = LIST_DEFAULT;
	int direction;
	struct answer *a = agentuity_answer(req, &form);
	a->call.takes_ended = true;
	if (query_optional_number(req, "limit", 1, LIST_MAX, &limit, &e) < 0 ||
		agentuity_query_word(req, "direction", directions, &direction, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	struct json_writer *w = a->own;
	w->out = &a->out;
	agentuity_begin_data(w);
	json_begin_object(w);
	json_key(w, "events");
	json_begin_array(w);
	a->op = op_history(&a->call,
		&(struct op_history){.limit = (unsigned)limit, .backwards = direction == 1});
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/sandboxes/{id}/events", agentuity_events_handle_list, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_event_table = ROUTE_TABLE(routes);
