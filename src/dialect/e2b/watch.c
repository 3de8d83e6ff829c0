#include "dialect/e2b/watch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PATH_LEN_MAX 4095
#define PENDING_MAX  (64u * 1024)

static const struct json_field watch_fields[] = {
	{"path", JSON_STRING, offsetof(struct watch_message, path), 0, 0, PATH_LEN_MAX},
	{"recursive", JSON_BOOL, offsetof(struct watch_message, recursive), 0, 0, 0},
	{"includeEntry", JSON_BOOL, offsetof(struct watch_message, include_entry), 0, 0, 0},
	{"allowNetworkMounts", JSON_BOOL, offsetof(struct watch_message, network_mounts), 0, 0, 0},
};

int watch_decode(const cJSON *message, struct watch_message *ret, struct error *e)
{
	*ret = (struct watch_message){.path = ""};
	return json_decode_known(message, watch_fields, ARRAY_LEN(watch_fields), "", ret, e);
}

/* ---- events ---- */

unsigned watch_translate(const struct file_notice *notice, struct watch_event out[2])
{
	out[0] = (struct watch_event){.kind = notice->kind, .name = notice->path};
	if (notice->kind != FILE_EVENT_RENAME || !notice->destination[0])
		return 1;
	out[1] = (struct watch_event){.kind = FILE_EVENT_CREATE, .name = notice->destination};
	return 2;
}

bool watch_wants_entry(const struct watch_event *event)
{
	return event->kind == FILE_EVENT_CREATE || event->kind == FILE_EVENT_WRITE ||
	       event->kind == FILE_EVENT_CHMOD;
}

void watch_put_event(struct json_writer *w, const struct watch_event *event)
{
	static const char *const names[FILE_EVENT_KINDS] = {
		[FILE_EVENT_CREATE] = "EVENT_TYPE_CREATE",
		[FILE_EVENT_WRITE] = "EVENT_TYPE_WRITE",
		[FILE_EVENT_REMOVE] = "EVENT_TYPE_REMOVE",
		[FILE_EVENT_RENAME] = "EVENT_TYPE_RENAME",
		[FILE_EVENT_CHMOD] = "EVENT_TYPE_CHMOD",
		[FILE_EVENT_OVERFLOW] = "EVENT_TYPE_UNSPECIFIED",
	};
	json_begin_object(w);
	json_put_string(w, "name", event->name);
	json_put_string(w, "type", names[event->kind]);
	if (event->entry) {
		json_key(w, "entry");
		json_raw(w, event->entry);
	}
	json_end_object(w);
}

/* ---- lookups ---- */

static void lookup_entry(void *arg, const struct file_entry *entry)
{
	entry_begin(&((struct watch_lookup *)arg)->entry, entry);
}

static void lookup_attribute(void *arg, const struct file_attribute *attribute)
{
	entry_attribute(&((struct watch_lookup *)arg)->entry, attribute);
}

static void lookup_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct watch_lookup *l = arg;
	autobuf out = {0};
	(void)result;
	entry_end(&l->entry);
	buf_append_char(&l->out, '\0');
	out = l->out;
	l->out = (struct buf){0};
	l->call = NULL;
	l->found(l->arg, e || out.failed || out.len <= 1 ? NULL : out.data);
}

static const struct file_events lookup_events = {
	.entry = lookup_entry, .attribute = lookup_attribute, .done = lookup_done};

bool watch_lookup_begin(struct watch_lookup *l, struct sandbox *s, const char *cwd,
	const char *directory, const char *name)
{
	autobuf path = {0};
	struct error e;
	struct file_request request = {.fixed = {.op = FILE_STAT, .flags = ENTRY_FLAGS}};
	buf_append_str(&path, directory);
	buf_append_char(&path, '/');
	buf_append_str(&path, name);
	buf_append_char(&path, '\0');
	request.text[FILE_PATH] = path.failed ? "" : path.data;
	request.text[FILE_CWD] = cwd;
	l->json = (struct json_writer){.out = &l->out};
	l->entry = (struct entry_writer){.json = &l->json};
	return s && file_begin(s, ENVD_FILE_USER, &request, &lookup_events, l, &l->call, &e) == 0;
}

void watch_lookup_cancel(struct watch_lookup *l)
{
	if (l->call)
		file_cancel(l->call);
	l->call = NULL;
	buf_finish(&l->out);
}

/* ---- a watch ---- */

static void set_pace(struct watch *w)
{
	bool hold = w->paused || w->pending.len > PENDING_MAX;
	if (!w->call || hold == w->held)
		return;
	w->held = hold;
	if (hold)
		file_pause(w->call);
	else
		file_resume(w->call);
}

/* Tells what waits, until something has to be looked up. */
static void tell_pending(struct watch *w)
{
	while (w->pending.len > 0 && !w->lookup.call) {
		struct watch_event event = {
			.kind = (enum file_event)w->pending.data[0], .name = w->pending.data + 1};
		if (w->include_entry && watch_wants_entry(&event) &&
			watch_lookup_begin(&w->lookup, sandbox_find_any(w->box, w->sandbox_id),
				w->cwd, w->directory, event.name))
			break;
		w->events->event(w->arg, &event);
		buf_consume(&w->pending, strlen(w->pending.data + 1) + 2);
	}
	set_pace(w);
}

static void lookup_found(void *arg, const char *json)
{
	struct watch *w = arg;
	const struct watch_event event = {.kind = (enum file_event)w->pending.data[0],
		.name = w->pending.data + 1,
		.entry = json};
	w->events->event(w->arg, &event);
	buf_consume(&w->pending, strlen(w->pending.data + 1) + 2);
	tell_pending(w);
}

static void notice_came(void *arg, const struct file_notice *notice)
{
	struct watch *w = arg;
	struct watch_event events[2];
	unsigned count = watch_translate(notice, events);
	if (notice->kind == FILE_EVENT_OVERFLOW) {
		struct error e;
		error_set(&e, ERROR_RESOURCE_EXHAUSTED,
			"more happened than could be told: watch again, and look");
		file_cancel(take_ptr(w->call));
		w->events->ended(w->arg, &e);
		return;
	}
	bool idle = w->pending.len == 0;
	for (unsigned i = 0; i < count; i++) {
		buf_append_char(&w->pending, (char)events[i].kind);
		buf_append(&w->pending, events[i].name, strlen(events[i].name) + 1);
	}
	if (idle && !w->pending.failed)
		tell_pending(w);
	else
		set_pace(w);
}

static void watch_is_ready(void *arg)
{
	struct watch *w = arg;
	w->events->ready(w->arg);
}

static void watch_is_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct watch *w = arg;
	struct error ended;
	(void)result;
	w->call = NULL;
	error_set(&ended, ERROR_NOT_FOUND, "the directory is gone");
	w->events->ended(w->arg, e ? e : &ended);
}

static const struct file_events file_events = {
	.ready = watch_is_ready, .notice = notice_came, .done = watch_is_done};

int watch_start(struct watch *w, struct http_request *req, const struct watch_message *message,
	const struct watch_events *events, void *arg, struct error *e)
{
	struct sandbox_view view;
	struct sandbox *s = envd_sandbox(req);
	struct envd_actor actor;
	const char *path = envd_path(message->path, e);
	if (!path || envd_actor(req, NULL, &actor, e) < 0)
		return -1;
	struct file_request request = {
		.fixed = {.op = FILE_WATCH, .flags = message->recursive ? FILE_RECURSIVE : 0}};
	request.text[FILE_PATH] = path;
	request.text[FILE_CWD] = actor.cwd;
	sandbox_view(s, &view);
	*w = (struct watch){.box = server_of(req)->box,
		.include_entry = message->include_entry,
		.events = events,
		.arg = arg};
	memcpy(w->sandbox_id, view.id, ID_SIZE);
	if (file_begin(s, ENVD_FILE_USER, &request, &file_events, w, &w->call, e) < 0)
		return -1;
	w->cwd = e2b_copy(actor.cwd);
	w->directory = e2b_copy(path);
	w->lookup.found = lookup_found;
	w->lookup.arg = w;
	return 0;
}

void watch_stop(struct watch *w)
{
	if (w->call)
		file_cancel(w->call);
	watch_lookup_cancel(&w->lookup);
	buf_finish(&w->pending);
	free(w->cwd);
	free(w->directory);
	*w = (struct watch){0};
}

void watch_pause(struct watch *w)
{
	w->paused = true;
	set_pace(w);
}

void watch_resume(struct watch *w)
{
	w->paused = false;
	set_pace(w);
}
