/*
 * Notices wait in a queue of bounded size: while the caller is paused, and while one of them is
 * looked up. The order stays. When the queue is full the watch is held, so that the rest waits
 * inside the sandbox, until the kernel drops some and says so.
 */
#include "op/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/files/watcher.h"
#include "op/op_core.h"

#define QUEUE_MAX (64u * 1024)
#define ROOT      "0"
#define SYNC_MS   2000 /* for which a take waits for the sandbox */

struct watch_op {
	struct op op;
	struct file_call *call;   /* NULL: it has ended, or nothing is watched */
	struct file_call *lookup; /* of what the first notice is about; NULL: none is under way */
	char *user, *cwd, *directory; /* for lookups */
	bool entries, held;
	bool looked_up;   /* the first notice's entry was told, if there was one */
	bool idle;        /* nothing was told since OP_IDLE */
	struct buf queue; /* each a kind, whether a directory, path, NUL, destination, NUL */
	bool ended;       /* no more will come */
	bool failed;      /* and `why` says why */
	struct error why;
	/* for a take, which syncs the watcher first: */
	struct file_watcher_waiter waiter;
	uv_timer_t *patience;
	char watcher[ID_SIZE];
};

static void watch_advance(struct watch_op *w);

static void watch_keep(void *arg, const struct file_notice *n)
{
	struct watch_op *w = arg;
	const char *destination = n->destination ? n->destination : "";
	buf_append_char(&w->queue, (char)n->kind);
	buf_append_char(&w->queue, (char)n->directory);
	buf_append(&w->queue, n->path, strlen(n->path) + 1);
	buf_append(&w->queue, destination, strlen(destination) + 1);
}

/* Decodes the first notice of the queue; returns its size there. */
static size_t watch_first(const struct watch_op *w, struct file_notice *ret)
{
	const char *path = w->queue.data + 2, *destination = path + strlen(path) + 1;
	*ret = (struct file_notice){.kind = (enum file_event)w->queue.data[0],
		.directory = w->queue.data[1] != 0,
		.path = path,
		.destination = destination};
	return 2 + strlen(path) + 1 + strlen(destination) + 1;
}

static void watch_set_pace(struct watch_op *w)
{
	bool hold = w->queue.len > QUEUE_MAX;
	if (!w->call || hold == w->held)
		return;
	w->held = hold;
	if (hold)
		file_pause(w->call);
	else
		file_resume(w->call);
}

/* ---- lookups ---- */

static void watch_emit(struct watch_op *w, const struct op_event *event)
{
	if (op_emit(&w->op, event) && w->op.paused && w->lookup)
		file_pause(w->lookup);
}

static void lookup_entry(void *arg, const struct file_entry *entry)
{
	watch_emit(arg, &(struct op_event){.kind = OP_ENTRY, .entry = entry});
}

static void lookup_attribute(void *arg, const struct file_attribute *attribute)
{
	watch_emit(arg, &(struct op_event){.kind = OP_ATTRIBUTE, .attribute = attribute});
}

static void lookup_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct watch_op *w = arg;
	(void)result;
	(void)e;
	w->lookup = NULL;
	w->looked_up = true;
	watch_advance(w);
}

static void watch_set_lookups(struct watch_op *w, const struct watch_spec *spec)
{
	w->entries = spec->entries;
	w->user = mem_copy_text(spec->user);
	w->cwd = mem_copy_text(spec->cwd);
	w->directory = mem_copy_text(spec->path);
}

/* NULL: there is nothing to look at. */
static const char *lookup_name(const struct file_notice *n)
{
	if (n->kind == FILE_EVENT_RENAME)
		return n->destination[0] ? n->destination : NULL;
	bool is_there = n->kind == FILE_EVENT_CREATE || n->kind == FILE_EVENT_WRITE ||
			n->kind == FILE_EVENT_CHMOD;
	return is_there ? n->path : NULL;
}

static bool lookup_begin(struct watch_op *w, const char *name)
{
	static const struct file_events events = {
		.entry = lookup_entry, .attribute = lookup_attribute, .done = lookup_done};
	autobuf path = {0};
	struct error e;
	struct file_request request = {
		.fixed = {.op = FILE_STAT,
			.flags = FILE_WITH_NAMES | FILE_WITH_ATTRIBUTES | FILE_RESOLVED}};
	struct sandbox *s = op_sandbox(&w->op, &e);
	buf_append_str(&path, w->directory);
	buf_append_char(&path, '/');
	buf_append(&path, name, strlen(name) + 1);
	if (!s || path.failed)
		return false;
	request.text[FILE_PATH] = path.data;
	request.text[FILE_CWD] = w->cwd;
	return file_begin(s, w->user, &request, &events, w, &w->lookup, &e) == 0;
}

/* ---- telling ---- */

/* False: the operation is gone, or something is being looked up. */
static bool watch_tell_first(struct watch_op *w)
{
	struct file_notice notice;
	size_t size = watch_first(w, &notice);
	const char *name = w->entries && !w->looked_up ? lookup_name(&notice) : NULL;
	if (name && lookup_begin(w, name))
		return false;
	w->looked_up = w->idle = false;
	if (!op_emit(&w->op, &(struct op_event){.kind = OP_NOTICE, .notice = &notice}))
		return false;
	buf_consume(&w->queue, size);
	return true;
}

static void watch_finish(struct watch_op *w)
{
	if (w->failed)
		op_fail(&w->op, OP_ERROR, &w->why);
	else
		op_done(&w->op, &(struct op_event){.kind = OP_DONE});
}

/* Tells what waits, until something has to be looked up or the caller has enough. */
static void watch_advance(struct watch_op *w)
{
	while (w->queue.len > 0 && !w->op.paused)
		if (w->lookup || !watch_tell_first(w))
			return;
	if (w->op.paused)
		return;
	if (w->ended) {
		watch_finish(w);
		return;
	}
	if (!w->idle) {
		w->idle = true;
		if (!op_emit(&w->op, &(struct op_event){.kind = OP_IDLE}))
			return;
	}
	watch_set_pace(w);
}

static void watch_resume(struct op *op)
{
	struct watch_op *w = (struct watch_op *)op;
	if (w->waiter.watcher)
		return;
	if (w->lookup)
		file_resume(w->lookup);
	else
		watch_advance(w);
}

static void watch_release(struct op *op, enum op_end end)
{
	struct watch_op *w = (struct watch_op *)op;
	(void)end;
	if (w->call)
		file_cancel(w->call);
	if (w->lookup)
		file_cancel(w->lookup);
	file_watcher_unsync(&w->waiter);
	op_timer_stop(&w->patience);
	buf_finish(&w->queue);
	free(w->user);
	free(w->cwd);
	free(w->directory);
}

/* ---- a watch ---- */

static void watch_ready(void *arg)
{
	struct watch_op *w = arg;
	w->idle = false;
	op_emit(&w->op, &(struct op_event){.kind = OP_READY});
}

static void watch_notice(void *arg, const struct file_notice *notice)
{
	struct watch_op *w = arg;
	bool waits = w->queue.len > 0;
	watch_keep(w, notice);
	if (w->queue.failed) {
		error_set(&w->why, ERROR_RESOURCE_EXHAUSTED, "out of memory");
		op_fail(&w->op, OP_ERROR, &w->why);
	} else if (waits) {
		watch_set_pace(w);
	} else {
		watch_advance(w);
	}
}

static void watch_ended(void *arg, const struct file_result *result, const struct error *e)
{
	struct watch_op *w = arg;
	(void)result;
	w->call = NULL;
	w->ended = true;
	w->failed = e != NULL;
	if (e)
		w->why = *e;
	if (!w->lookup)
		watch_advance(w);
}

/* Fills in whose rights are meant, and where paths begin; *cwd is to be freed. */
static struct watch_spec watch_resolve(
	const struct sandbox *s, const struct watch_spec *spec, char **cwd)
{
	struct watch_spec full = *spec;
	if (spec->as_root) {
		full.user = ROOT;
		full.cwd = *cwd = op_root_cwd(s, spec->user);
	}
	return full;
}

struct op *op_watch(const struct op_call *call, const struct watch_spec *given)
{
	static const struct op_type type = {
		"files.watch", .resume = watch_resume, .release = watch_release, .early = true};
	static const struct file_events events = {
		.ready = watch_ready, .notice = watch_notice, .done = watch_ended};
	struct sandbox *s;
	struct watch_op *w = (struct watch_op *)op_new(call, &type, sizeof *w, &s);
	struct file_request request = {
		.fixed = {.op = FILE_WATCH, .flags = given->recursive ? FILE_RECURSIVE : 0}};
	if (w->op.failed)
		return &w->op;
	autofree char *cwd = NULL;
	const struct watch_spec spec = watch_resolve(s, given, &cwd);
	request.text[FILE_PATH] = spec.path;
	request.text[FILE_CWD] = spec.cwd;
	w->idle = true;
	watch_set_lookups(w, &spec);
	w->op.failed = file_begin(s, spec.user, &request, &events, w, &w->call, &w->op.failure) < 0;
	op_has_begun(&w->op);
	return &w->op;
}

/* ---- a watcher's notices ---- */

static struct file_watcher *watcher_named(const struct op *op, const char *id, struct error *e)
{
	struct sandbox *s = op_sandbox(op, e);
	struct file_watcher *found = s ? file_watcher_find(s, id) : NULL;
	if (s && !found)
		error_set(e, ERROR_NOT_FOUND, "watcher with id %.64s not found", id);
	return found;
}

static int take_what_is_there(struct watch_op *w, struct error *e)
{
	struct file_watcher *found = watcher_named(&w->op, w->watcher, e);
	if (!found)
		return -1;
	watch_set_lookups(w, file_watcher_spec(found));
	w->ended = true;
	return file_watcher_take(found, watch_keep, w, e);
}

static void watch_take_synced(void *arg)
{
	struct watch_op *w = arg;
	struct error e;
	op_timer_stop(&w->patience);
	if (take_what_is_there(w, &e) < 0)
		op_fail(&w->op, OP_ERROR, &e);
	else
		watch_advance(w);
}

static void take_unanswered(uv_timer_t *timer)
{
	struct watch_op *w = timer->data;
	file_watcher_unsync(&w->waiter);
	watch_take_synced(w);
}

struct op *op_watcher_take(const struct op_call *call, const struct op_watcher *watcher)
{
	static const struct op_type type = {"files.watcher.take", .resume = watch_resume,
		.release = watch_release, .early = true};
	struct sandbox *s;
	struct watch_op *w = (struct watch_op *)op_new(call, &type, sizeof *w, &s);
	struct op *op = &w->op;
	struct file_watcher *found =
		op->failed ? NULL : watcher_named(op, watcher->id, &op->failure);
	op->failed = !found;
	snprintf(w->watcher, sizeof w->watcher, "%s", watcher->id);
	if (found && file_watcher_sync(found, &w->waiter, watch_take_synced, w))
		w->patience = op_timer_start(op, SYNC_MS, take_unanswered);
	else if (found)
		op->failed = take_what_is_there(w, &op->failure) < 0;
	op_has_begun(op);
	return op;
}

/* ---- making and removing watchers ---- */

static void watcher_made(void *arg, const char *id, const struct error *e)
{
	struct op *op = arg;
	struct error gone;
	struct file_watcher *unknown = op->gone && id ? watcher_named(op, id, &gone) : NULL;
	if (unknown)
		file_watcher_remove(unknown); /* no client knows its id */
	if (!op_awaited(op))
		return;
	if (e)
		op_fail(op, OP_ERROR, e);
	else
		op_done(op, &(struct op_event){.kind = OP_DONE, .id = id});
}

static void watcher_create_ask(struct op *op)
{
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	autofree char *cwd = NULL;
	op_await(op);
	if (s) {
		const struct watch_spec spec = watch_resolve(s, op_asked(op), &cwd);
		if (file_watcher_create(s, &spec, watcher_made, op, &e) == 0)
			return;
	}
	op_awaited(op);
	op_fail(op, s ? OP_ERROR : OP_NO_SANDBOX, &e);
}

struct op *op_watcher_create(const struct op_call *call, const struct watch_spec *spec)
{
	static const struct op_type type = {"files.watcher.create", .ask = watcher_create_ask};
	return op_ask(call, &type, spec, sizeof *spec);
}

static void watcher_remove_ask(struct op *op)
{
	struct error e;
	const struct op_watcher *request = op_asked(op);
	struct file_watcher *found = watcher_named(op, request->id, &e);
	if (!found) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	file_watcher_remove(found);
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_watcher_remove(const struct op_call *call, const struct op_watcher *watcher)
{
	static const struct op_type type = {"files.watcher.remove", .ask = watcher_remove_ask};
	return op_ask(call, &type, watcher, sizeof *watcher);
}
