#include "box/files/watcher.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/mem.h"
#include "box/files/part.h"
#include "box/sandbox/object.h"

struct watcher {
	struct watcher *prev, *next; /* of the sandbox */
	struct sandbox *sandbox;
	char id[ID_SIZE];
	struct watch_spec spec; /* the texts are copies */
	struct file_call *call; /* NULL: it has ended */
	struct buf events;      /* each a kind, whether a directory, path, NUL, destination, NUL */
	unsigned count;
	bool lost; /* something happened that could not be kept */
	struct error ended;
	watcher_made_fn *made; /* until it is ready */
	void *arg;
};

static void watcher_free(struct watcher *w)
{
	DL_DELETE(w->sandbox->files.watchers, w);
	buf_finish(&w->events);
	free((char *)w->spec.user);
	free((char *)w->spec.path);
	free((char *)w->spec.cwd);
	free(w);
}

void watcher_remove(struct watcher *w)
{
	watcher_made_fn *made = w->made;
	void *arg = w->arg;
	struct error e;
	if (w->call)
		file_cancel(w->call);
	watcher_free(w);
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox has ended");
	if (made)
		made(arg, NULL, &e);
}

void watcher_remove_all(struct sandbox *s)
{
	while (s->files.watchers)
		watcher_remove(s->files.watchers);
}

/* ---- what the worker tells ---- */

static void is_ready(void *arg)
{
	struct watcher *w = arg;
	watcher_made_fn *made = w->made;
	w->made = NULL;
	if (made)
		made(w->arg, w->id, NULL);
}

static void has_notice(void *arg, const struct file_notice *notice)
{
	struct watcher *w = arg;
	const char *destination = notice->destination ? notice->destination : "";
	size_t size = strlen(notice->path) + strlen(destination) + 4;
	if (notice->kind == FILE_EVENT_OVERFLOW || w->count == WATCHER_EVENTS_MAX ||
		w->events.len + size > WATCHER_BYTES_MAX) {
		w->lost = true;
		return;
	}
	buf_append_char(&w->events, (char)notice->kind);
	buf_append_char(&w->events, (char)notice->directory);
	buf_append(&w->events, notice->path, strlen(notice->path) + 1);
	buf_append(&w->events, destination, strlen(destination) + 1);
	w->count++;
}

static void watcher_has_ended(void *arg, const struct file_result *result, const struct error *e)
{
	struct watcher *w = arg;
	watcher_made_fn *made = w->made;
	struct error why;
	(void)result;
	w->call = NULL;
	error_set(&why, ERROR_NOT_FOUND, "the directory is gone");
	w->ended = e ? *e : why;
	if (!made)
		return;
	void *made_arg = w->arg;
	why = w->ended;
	watcher_free(w);
	made(made_arg, NULL, &why);
}

static const struct file_events events = {
	.ready = is_ready, .notice = has_notice, .done = watcher_has_ended};

/* ---- making, asking ---- */

static char *watcher_copy(const char *text)
{
	char *result = text ? strdup(text) : NULL;
	if (text && !result)
		abort();
	return result;
}

int watcher_create(struct sandbox *s, const struct watch_spec *spec, watcher_made_fn *made,
	void *arg, struct error *e)
{
	const struct watcher *other;
	unsigned count = 0;
	DL_COUNT(s->files.watchers, other, count);
	if (count >= WATCHERS_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the sandbox has %d watchers already, the most that is allowed",
			WATCHERS_MAX);
	struct watcher *w = mem_new(sizeof *w);
	id_generate(w->id);
	w->sandbox = s;
	w->spec = *spec;
	w->spec.user = watcher_copy(spec->user);
	w->spec.path = watcher_copy(spec->path);
	w->spec.cwd = watcher_copy(spec->cwd);
	w->made = made;
	w->arg = arg;
	DL_APPEND(s->files.watchers, w);
	struct file_request request = {
		.fixed = {.op = FILE_WATCH, .flags = spec->recursive ? FILE_RECURSIVE : 0}};
	request.text[FILE_PATH] = spec->path;
	request.text[FILE_CWD] = spec->cwd;
	int r = file_begin(s, spec->user, &request, &events, w, &w->call, e);
	if (r < 0)
		watcher_free(w);
	return r;
}

struct watcher *watcher_find(const struct sandbox *s, const char *id)
{
	struct watcher *w;
	DL_FOREACH (s->files.watchers, w)
		if (strcmp(w->id, id) == 0)
			return w;
	return NULL;
}

const struct watch_spec *watcher_spec(const struct watcher *w)
{
	return &w->spec;
}

int watcher_take(struct watcher *w, void (*each)(void *arg, const struct file_notice *notice),
	void *arg, struct error *e)
{
	autobuf taken = w->events;
	bool lost = w->lost || taken.failed;
	w->events = (struct buf){0};
	w->count = 0;
	w->lost = false;
	if (lost)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED,
			"more happened than could be kept: look at the directory itself");
	if (taken.len == 0 && !w->call) {
		*e = w->ended;
		return -1;
	}
	for (size_t at = 0; at < taken.len;) {
		const char *path = taken.data + at + 2, *destination = path + strlen(path) + 1;
		struct file_notice notice = {.kind = (enum file_event)taken.data[at],
			.directory = taken.data[at + 1] != 0,
			.path = path,
			.destination = destination};
		at += 2 + strlen(path) + 1 + strlen(destination) + 1;
		each(arg, &notice);
	}
	return 0;
}
