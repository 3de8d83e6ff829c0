#include "box/files/watcher.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/mem.h"
#include "box/files/part.h"
#include "box/sandbox/object.h"
#include "box/sandbox/status.h"

struct file_watcher {
	struct file_watcher *prev, *next; /* of the sandbox */
	struct sandbox *sandbox;
	char id[ID_SIZE];
	struct watch_spec spec; /* the texts are copies */
	struct file_call *call; /* NULL: it has ended */
	struct buf events;      /* each a kind, whether a directory, path, NUL, destination, NUL */
	unsigned count;
	bool lost;    /* something happened that could not be kept */
	bool syncing; /* a SYNC is out, for the waiters that are marked */
	struct error ended;
	file_watcher_made_fn *made; /* until it is ready */
	void *arg;
	struct file_watcher_waiter *waiters; /* for a sync */
};

/* ---- syncs ---- */

static void file_watcher_call(struct file_watcher_waiter *waiter)
{
	file_watcher_unsync(waiter);
	waiter->done(waiter->arg);
}

/*
 * Calls the waiters of the SYNC that was answered, or all of them when no other answer will come.
 */
static void file_watcher_call_waiters(struct file_watcher *w, bool all)
{
	struct file_watcher_waiter *waiter, *next;
	DL_FOREACH_SAFE (w->waiters, waiter, next)
		if (all || waiter->asked)
			file_watcher_call(waiter);
}

static void file_watcher_ask(struct file_watcher *w)
{
	struct file_watcher_waiter *waiter;
	if (!w->waiters || !w->call)
		return;
	DL_FOREACH (w->waiters, waiter)
		waiter->asked = true;
	w->syncing = true;
	file_put_sync(w->call);
}

static void file_watcher_synced(void *arg)
{
	struct file_watcher *w = arg;
	w->syncing = false;
	file_watcher_call_waiters(w, false);
	file_watcher_ask(w);
}

bool file_watcher_sync(struct file_watcher *w, struct file_watcher_waiter *waiter,
	void (*done)(void *arg), void *arg)
{
	if (!w->call || w->made || !sandbox_is_awake(w->sandbox))
		return false;
	*waiter = (struct file_watcher_waiter){.watcher = w, .done = done, .arg = arg};
	DL_APPEND(w->waiters, waiter);
	if (!w->syncing)
		file_watcher_ask(w);
	return true;
}

void file_watcher_unsync(struct file_watcher_waiter *waiter)
{
	if (waiter->watcher)
		DL_DELETE(waiter->watcher->waiters, waiter);
	waiter->watcher = NULL;
}

/* ---- their end ---- */

static void file_watcher_free(struct file_watcher *w)
{
	DL_DELETE(w->sandbox->files.watchers, w);
	buf_finish(&w->events);
	free((char *)w->spec.user);
	free((char *)w->spec.path);
	free((char *)w->spec.cwd);
	free(w);
}

void file_watcher_remove(struct file_watcher *w)
{
	file_watcher_made_fn *made = w->made;
	void *arg = w->arg;
	struct error e;
	if (w->call)
		file_cancel(w->call);
	w->call = NULL;
	error_set(&e, ERROR_NOT_RUNNING, "the sandbox has ended");
	w->ended = e;
	file_watcher_call_waiters(w, true);
	file_watcher_free(w);
	if (made)
		made(arg, NULL, &e);
}

void file_watcher_remove_all(struct sandbox *s)
{
	while (s->files.watchers)
		file_watcher_remove(s->files.watchers);
}

/* ---- what the worker tells ---- */

static void is_ready(void *arg)
{
	struct file_watcher *w = arg;
	file_watcher_made_fn *made = w->made;
	w->made = NULL;
	if (made)
		made(w->arg, w->id, NULL);
}

static void has_notice(void *arg, const struct file_notice *notice)
{
	struct file_watcher *w = arg;
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

static void file_watcher_has_ended(
	void *arg, const struct file_result *result, const struct error *e)
{
	struct file_watcher *w = arg;
	file_watcher_made_fn *made = w->made;
	struct error why;
	(void)result;
	w->call = NULL;
	error_set(&why, ERROR_NOT_FOUND, "the directory is gone");
	w->ended = e ? *e : why;
	file_watcher_call_waiters(w, true);
	if (!made)
		return;
	void *made_arg = w->arg;
	why = w->ended;
	file_watcher_free(w);
	made(made_arg, NULL, &why);
}

static const struct file_events events = {.ready = is_ready,
	.notice = has_notice,
	.synced = file_watcher_synced,
	.done = file_watcher_has_ended};

/* ---- making, asking ---- */

int file_watcher_create(struct sandbox *s, const struct watch_spec *spec,
	file_watcher_made_fn *made, void *arg, struct error *e)
{
	const struct file_watcher *other;
	unsigned count = 0;
	DL_COUNT(s->files.watchers, other, count);
	if (count >= WATCHERS_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the sandbox has %d watchers already, the most that is allowed",
			WATCHERS_MAX);
	struct file_watcher *w = mem_new(sizeof *w);
	id_generate(w->id);
	w->sandbox = s;
	w->spec = *spec;
	w->spec.user = mem_copy_text(spec->user);
	w->spec.path = mem_copy_text(spec->path);
	w->spec.cwd = mem_copy_text(spec->cwd);
	w->made = made;
	w->arg = arg;
	DL_APPEND(s->files.watchers, w);
	struct file_request request = {
		.fixed = {.op = FILE_WATCH, .flags = spec->recursive ? FILE_RECURSIVE : 0}};
	request.text[FILE_PATH] = spec->path;
	request.text[FILE_CWD] = spec->cwd;
	int r = file_begin(s, spec->user, &request, &events, w, &w->call, e);
	if (r < 0)
		file_watcher_free(w);
	return r;
}

struct file_watcher *file_watcher_find(const struct sandbox *s, const char *id)
{
	struct file_watcher *w;
	DL_FOREACH (s->files.watchers, w)
		if (strcmp(w->id, id) == 0)
			return w;
	return NULL;
}

const struct watch_spec *file_watcher_spec(const struct file_watcher *w)
{
	return &w->spec;
}

int file_watcher_take(struct file_watcher *w,
	void (*each)(void *arg, const struct file_notice *notice), void *arg, struct error *e)
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
