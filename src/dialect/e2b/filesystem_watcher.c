/* CreateWatcher, GetWatcherEvents, RemoveWatcher: for clients that cannot keep a stream open. */
#include "dialect/e2b/filesystem.h"
#include "dialect/e2b/watch.h"
#include "op/watch.h"

/* ---- CreateWatcher ---- */

static int watcher_put_id(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	json_begin_object(&w);
	json_put_string(&w, "watcherId", event->id);
	json_end_object(&w);
	return 0;
}

static enum answer_failure watcher_explain(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const char *const *path = a->own;
	struct error why = *e;
	(void)event;
	filesystem_explain(*path, &why, e);
	return ANSWER_ERROR;
}

static void filesystem_watcher_handle_create(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(const char *),
		.put = watcher_put_id,
		.fail = watcher_explain};
	struct error e = {0};
	struct watch_spec spec = {0};
	struct answer *a = envd_answer(req, &form);
	const char **path = a->own;
	*path = "";
	const cJSON *message = rpc_message(a, &e);
	if (!message || watch_decode(req, message, &spec, path, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_watcher_create(&a->call, &spec);
	answer_run(a);
}

/* ---- GetWatcherEvents ---- */

struct watcher_events {
	struct json_writer json;
	struct watch_entry entry;
};

static int watcher_put_events(struct answer *a, const struct op_event *event, struct error *e)
{
	struct watcher_events *x = a->own;
	struct watch_event events[2];
	(void)e;
	if (event->kind == OP_NOTICE) {
		unsigned count = watch_translate(&x->entry, event->notice, events);
		for (unsigned i = 0; i < count; i++)
			watch_put_event(&x->json, &events[i]);
		watch_drop_entry(&x->entry);
	} else if (event->kind == OP_DONE) {
		json_end_array(&x->json);
		json_end_object(&x->json);
	} else {
		watch_keep_entry(&x->entry, event);
	}
	return 0;
}

static void watcher_events_finish(struct answer *a)
{
	watch_drop_entry(&((struct watcher_events *)a->own)->entry);
}

static int watcher_decode(struct answer *a, struct op_watcher *ret, struct error *e)
{
	const cJSON *message = rpc_message(a, e);
	const cJSON *id = cJSON_GetObjectItemCaseSensitive(message, "watcherId");
	ret->id = cJSON_IsString(id) ? id->valuestring : "";
	return message ? 0 : -1;
}

static void filesystem_watcher_handle_events(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct watcher_events),
		.put = watcher_put_events,
		.finish = watcher_events_finish};
	struct error e = {0};
	struct op_watcher watcher;
	struct answer *a = envd_answer(req, &form);
	struct watcher_events *x = a->own;
	if (watcher_decode(a, &watcher, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	x->json.out = &a->out;
	json_begin_object(&x->json);
	json_key(&x->json, "events");
	json_begin_array(&x->json);
	a->op = op_watcher_take(&a->call, &watcher);
	answer_run(a);
}

/* ---- RemoveWatcher ---- */

static void filesystem_watcher_handle_remove(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = rpc_put_empty};
	struct error e = {0};
	struct op_watcher watcher;
	struct answer *a = envd_answer(req, &form);
	if (watcher_decode(a, &watcher, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_watcher_remove(&a->call, &watcher);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/CreateWatcher", filesystem_watcher_handle_create,
		RPC_BODY_LIMIT, .scope = HTTP_SCOPE_READ},
	{HTTP_POST, "/filesystem.Filesystem/GetWatcherEvents", filesystem_watcher_handle_events,
		RPC_BODY_LIMIT, .scope = HTTP_SCOPE_READ},
	{HTTP_POST, "/filesystem.Filesystem/RemoveWatcher", filesystem_watcher_handle_remove,
		RPC_BODY_LIMIT, .scope = HTTP_SCOPE_READ},
};

const struct route_table filesystem_watcher_table = ROUTE_TABLE(routes);
