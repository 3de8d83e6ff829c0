#include "box/sandbox/event.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/object.h"

/* The number of events kept for one sandbox; older ones are removed in batches. */
#define EVENTS_KEPT  1000
#define EVENTS_SLACK 64

static const char *const type_names[EVENT_TYPE_COUNT] = {
	[EVENT_CREATED] = "created",
	[EVENT_STARTED] = "started",
	[EVENT_PAUSED] = "paused",
	[EVENT_SUSPENDED] = "suspended",
	[EVENT_RESUMED] = "resumed",
	[EVENT_UPDATED] = "updated",
	[EVENT_DENIED] = "denied",
	[EVENT_OOM] = "oom",
	[EVENT_FAILED] = "failed",
	[EVENT_CHECKPOINTED] = "checkpointed",
	[EVENT_RESTORED] = "restored",
	[EVENT_SNAPSHOTTED] = "snapshotted",
	[EVENT_FORKED] = "forked",
	[EVENT_TERMINATED] = "terminated",
	[EVENT_DELETED] = "deleted",
};

static const char *const cause_names[CAUSE_COUNT] = {
	[CAUSE_REQUEST] = "request",
	[CAUSE_CALL] = "call",
	[CAUSE_IDLE] = "idle",
	[CAUSE_LEASE] = "lease",
	[CAUSE_PAUSED] = "paused",
	[CAUSE_COMPLETED] = "completed",
	[CAUSE_POLICY] = "policy",
	[CAUSE_CRASH] = "crash",
	[CAUSE_SHUTDOWN] = "shutdown",
};

const char *event_type_name(enum event_type type)
{
	return type_names[type];
}

const char *event_cause_name(enum event_cause cause)
{
	return cause_names[cause];
}

bool event_is_last(const char *type)
{
	return strcmp(type, type_names[EVENT_TERMINATED]) == 0 ||
	       strcmp(type, type_names[EVENT_DELETED]) == 0;
}

/* ---- recording ---- */

struct news {
	struct box *box;
	char sandbox[ID_SIZE];
};

static void event_stored(void *arg, int error)
{
	struct news *n = arg;
	struct event_watcher *w, *next;
	if (error)
		log_error("an event could not be stored", "sandbox", n->sandbox);
	DL_FOREACH_SAFE (n->box->sandboxes.event_watchers, w, next)
		if (strcmp(w->sandbox, n->sandbox) == 0)
			w->changed(w->arg);
	free(n);
}

static bool is_watched(const struct sandbox *s)
{
	const struct event_watcher *w;
	DL_FOREACH (s->box->sandboxes.event_watchers, w)
		if (strcmp(w->sandbox, s->id) == 0)
			return true;
	return false;
}

void event_add(struct sandbox *s, enum event_type type, enum event_cause cause,
	const struct event_detail *details)
{
	autobuf text = {0};
	struct news *news = NULL;
	for (; details && details->name; details++) {
		buf_append_str(&text, details->name);
		buf_append_char(&text, '=');
		buf_append(&text, details->value, strlen(details->value) + 1);
	}
	struct event_row row = {
		.sandbox = s->id,
		.number = (int64_t)++s->events,
		.time_ms = clock_wall_ms(),
		.type = type_names[type],
		.cause = cause_names[cause],
		.details = {text.data, text.failed ? 0 : text.len},
	};
	if (is_watched(s)) {
		news = mem_new(sizeof *news);
		news->box = s->box;
		memcpy(news->sandbox, s->id, ID_SIZE);
	}
	store_put_event(s->box->store, &row, news ? event_stored : NULL, news);
	if (s->events > EVENTS_KEPT && s->events % EVENTS_SLACK == 0)
		store_expire_events(s->box->store, s->id, row.number - EVENTS_KEPT);
}

/* ---- reading ---- */

struct listing {
	event_listed_fn *listed;
	void *arg;
};

static void rows_found(void *arg, const struct event_row *rows, size_t count)
{
	struct listing *l = arg;
	struct event_view *views = rows ? calloc(count + 1, sizeof *views) : NULL;
	for (size_t i = 0; views && i < count; i++)
		views[i] = (struct event_view){
			.number = (uint64_t)rows[i].number,
			.time_ms = rows[i].time_ms,
			.type = rows[i].type,
			.cause = rows[i].cause,
			.sandbox = rows[i].sandbox,
			.details = rows[i].details,
		};
	l->listed(l->arg, views, views ? count : 0);
	free(views);
	free(l);
}

void event_list(struct box *b, const char *tenant, const char *sandbox, uint64_t after,
	bool backwards, unsigned limit, event_listed_fn *listed, void *arg)
{
	struct listing *l = mem_new(sizeof *l);
	*l = (struct listing){listed, arg};
	store_list_events(
		b->store, tenant, sandbox, (int64_t)after, backwards, limit, rows_found, l);
}

void event_watch(struct box *b, struct event_watcher *w)
{
	DL_APPEND(b->sandboxes.event_watchers, w);
}

void event_unwatch(struct box *b, struct event_watcher *w)
{
	DL_DELETE(b->sandboxes.event_watchers, w);
}
