/*
 * CreateWatcher, GetWatcherEvents, RemoveWatcher: for clients that cannot keep a stream open. The
 * core collects; here it is only asked.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "box/files/watcher.h"
#include "dialect/e2b/filesystem.h"
#include "dialect/e2b/watch.h"

#define INCLUDE_ENTRY 1u /* a watcher's tag */

/* ---- CreateWatcher ---- */

struct create_call {
	struct http_request *req; /* NULL once the client has gone */
	struct box *box;
	char sandbox_id[ID_SIZE];
	char *path;
};

static void create_aborted(void *arg)
{
	((struct create_call *)arg)->req = NULL;
}

/* Nobody knows its id. */
static void forget(const struct create_call *call, const char *id)
{
	struct sandbox *s = sandbox_find_any(call->box, call->sandbox_id);
	struct watcher *w = s ? watcher_find(s, id) : NULL;
	if (w)
		watcher_remove(w);
}

static void watcher_made(void *arg, const char *id, const struct error *why)
{
	struct create_call *call = arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct error e;
	if (!call->req && id) {
		forget(call, id);
	} else if (call->req && !id) {
		filesystem_explain(call->path, why, &e);
		http_respond_error(call->req, &e);
	} else if (call->req) {
		json_begin_object(&w);
		json_put_string(&w, "watcherId", id);
		json_end_object(&w);
		connect_respond(call->req, &body);
	}
	free(call->path);
	free(call);
}

static int create(struct http_request *req, const cJSON *message, struct error *e)
{
	struct watch_message fields;
	struct sandbox_view view;
	struct sandbox *s = envd_sandbox(req);
	struct watcher_spec spec = {.user = ENVD_FILE_USER};
	struct envd_actor actor;
	if (watch_decode(message, &fields, e) < 0 || !(spec.path = envd_path(fields.path, e)) ||
		envd_actor(req, NULL, &actor, e) < 0)
		return -1;
	spec.cwd = actor.cwd;
	spec.recursive = fields.recursive;
	spec.tag = fields.include_entry ? INCLUDE_ENTRY : 0;
	struct create_call *call = calloc(1, sizeof *call);
	if (!call || !(call->path = strdup(fields.path)))
		abort();
	sandbox_view(s, &view);
	call->req = req;
	call->box = server_of(req)->box;
	memcpy(call->sandbox_id, view.id, ID_SIZE);
	if (watcher_create(s, &spec, watcher_made, call, e) < 0) {
		free(call->path);
		free(call);
		return -1;
	}
	http_on_abort(req, create_aborted, call);
	return 0;
}

static void handle_create(struct http_request *req)
{
	struct error e = {0}, explained;
	cJSON *message = connect_request(req);
	if (!message)
		return;
	if (create(req, message, &e) < 0) {
		filesystem_explain("", &e, &explained);
		http_respond_error(req, &explained);
	}
	cJSON_Delete(message);
}

/* ---- which one ---- */

static struct watcher *named_watcher(
	struct http_request *req, const cJSON *message, struct error *e)
{
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(message, "watcherId");
	const char *text = cJSON_IsString(id) ? id->valuestring : "";
	struct watcher *w = watcher_find(envd_sandbox(req), text);
	if (!w)
		error_set(e, ERROR_NOT_FOUND, "watcher with id %.64s not found", text);
	return w;
}

/* ---- GetWatcherEvents ---- */

struct events_call {
	struct http_request *req;
	struct box *box;
	char sandbox_id[ID_SIZE];
	char *cwd, *path;
	bool include_entry;
	struct buf pending; /* a kind's byte, the name, NUL */
	size_t at;
	struct buf body;
	struct json_writer json;
	struct watch_lookup lookup;
};

static void events_free(struct events_call *call)
{
	watch_lookup_cancel(&call->lookup);
	buf_finish(&call->pending);
	buf_finish(&call->body);
	free(call->cwd);
	free(call->path);
	free(call);
}

static void events_aborted(void *arg)
{
	events_free(arg);
}

static void keep_notice(void *arg, const struct file_notice *notice)
{
	struct events_call *call = arg;
	struct watch_event events[2];
	unsigned count = watch_translate(notice, events);
	for (unsigned i = 0; i < count; i++) {
		buf_append_char(&call->pending, (char)events[i].kind);
		buf_append(&call->pending, events[i].name, strlen(events[i].name) + 1);
	}
}

static void events_answer(struct events_call *call)
{
	struct http_request *req = call->req;
	json_end_array(&call->json);
	json_end_object(&call->json);
	struct buf body = call->body;
	call->body = (struct buf){0};
	events_free(call);
	connect_respond(req, &body);
}

/* Until one has to be looked up, or all are told. */
static void events_advance(struct events_call *call)
{
	while (call->at < call->pending.len) {
		struct watch_event event = {.kind = (enum file_event)call->pending.data[call->at],
			.name = call->pending.data + call->at + 1};
		if (call->include_entry && watch_wants_entry(&event) &&
			watch_lookup_begin(&call->lookup,
				sandbox_find_any(call->box, call->sandbox_id), call->cwd,
				call->path, event.name))
			return;
		watch_put_event(&call->json, &event);
		call->at += strlen(event.name) + 2;
	}
	events_answer(call);
}

static void event_looked_up(void *arg, const char *json)
{
	struct events_call *call = arg;
	const struct watch_event event = {.kind = (enum file_event)call->pending.data[call->at],
		.name = call->pending.data + call->at + 1,
		.entry = json};
	watch_put_event(&call->json, &event);
	call->at += strlen(event.name) + 2;
	events_advance(call);
}

static struct events_call *events_new(struct http_request *req, const struct watcher *w)
{
	struct events_call *call = calloc(1, sizeof *call);
	struct sandbox_view view;
	if (!call || !(call->path = strdup(watcher_path(w))) ||
		!(call->cwd = strdup(watcher_cwd(w))))
		abort();
	sandbox_view(envd_sandbox(req), &view);
	memcpy(call->sandbox_id, view.id, ID_SIZE);
	call->req = req;
	call->box = server_of(req)->box;
	call->include_entry = watcher_tag(w) & INCLUDE_ENTRY;
	call->json.out = &call->body;
	call->lookup.found = event_looked_up;
	call->lookup.arg = call;
	json_begin_object(&call->json);
	json_key(&call->json, "events");
	json_begin_array(&call->json);
	return call;
}

static void handle_events(struct http_request *req)
{
	struct error e = {0};
	cJSON *message = connect_request(req);
	if (!message)
		return;
	struct watcher *w = named_watcher(req, message, &e);
	cJSON_Delete(message);
	struct events_call *call = w ? events_new(req, w) : NULL;
	if (!call || watcher_take(w, keep_notice, call, &e) < 0) {
		if (call)
			events_free(call);
		http_respond_error(req, &e);
		return;
	}
	http_on_abort(req, events_aborted, call);
	events_advance(call);
}

/* ---- RemoveWatcher ---- */

static void handle_remove(struct http_request *req)
{
	struct error e = {0};
	cJSON *message = connect_request(req);
	if (!message)
		return;
	struct watcher *w = named_watcher(req, message, &e);
	cJSON_Delete(message);
	if (!w) {
		http_respond_error(req, &e);
		return;
	}
	watcher_remove(w);
	connect_respond_empty(req);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/CreateWatcher", handle_create, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/filesystem.Filesystem/GetWatcherEvents", handle_events, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/filesystem.Filesystem/RemoveWatcher", handle_remove, CONNECT_BODY_LIMIT},
};

const struct route_table filesystem_watcher_table = ROUTE_TABLE(routes);
