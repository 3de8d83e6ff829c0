/*
 * Calls: a request to a file worker, and how it ends. Its input is in file_input.c, its answers are
 * in file_answer.c.
 *
 * A sandbox that sleeps is woken for a call, which then waits in its link's buffer. A call that is
 * cancelled, or whose input did not come to its end, closes its link: the worker sees the end of
 * the stream and cleans up.
 */
#include "box/files/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/processor.h"
#include "box/files/file_call.h"
#include "box/files/part.h"
#include "box/sandbox/object.h"
#include "box/sandbox/pause.h"

#define CALLS_MAX  256 /* at once in a sandbox; fewer than init has workers */
#define PATH_SHOWN 160

/* The name of each operation in errors, and its properties. */
static const struct {
	const char *verb;
	bool input;
	bool slow; /* it looks at whole trees, and may be quiet for long */
} operations[FILE_OP_END] = {
	[FILE_READ] = {"read", false, false},
	[FILE_WRITE] = {"write", true, false},
	[FILE_STAT] = {"look at", false, false},
	[FILE_LIST] = {"list", false, true},
	[FILE_MKDIR] = {"make", false, false},
	[FILE_MOVE] = {"move", false, true},
	[FILE_COPY] = {"copy", false, true},
	[FILE_REMOVE] = {"remove", false, true},
	[FILE_CHMOD] = {"change the mode of", false, true},
	[FILE_CHOWN] = {"change the owner of", false, true},
	[FILE_SYMLINK] = {"make the link", false, false},
	[FILE_FIND] = {"search", false, true},
	[FILE_GREP] = {"search", false, true},
	[FILE_REPLACE] = {"replace in", false, true},
	[FILE_ATTRIBUTES] = {"change the metadata of", true, false},
	[FILE_PACK] = {"pack", false, true},
	[FILE_UNPACK] = {"unpack", true, true},
	[FILE_WATCH] = {"watch", false, true},
	[FILE_ROOT] = {"make a root of", false, true},
	[FILE_TRUST] = {"add certificates to", false, false},
};

/* ---- the end ---- */

/* The link is no longer its. */
static void call_free(struct file_call *c)
{
	c->sandbox->box->files.quick_calls -= !operations[c->op].slow;
	c->sandbox->files.inner--;
	sandbox_execution_ended(c->sandbox);
	free(c->path);
	free(c);
}

static void files_call_done(
	struct file_call *c, const struct file_result *result, const struct error *e)
{
	void (*done)(void *, const struct file_result *, const struct error *) = c->events.done;
	void *arg = c->arg;
	call_free(c);
	done(arg, result, e);
}

static void call_fail(struct file_call *c, const struct error *e)
{
	files_call_done(c, &(struct file_result){0}, e);
}

void file_cancel(struct file_call *c)
{
	file_link_close(c->link);
	call_free(c);
}

void file_call_lost(struct file_call *c)
{
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "cannot %s %.*s: the operation was interrupted inside",
		operations[c->op].verb, PATH_SHOWN, c->path);
	call_fail(c, &e);
}

void file_call_refused(struct file_call *c, const struct frame_started *started)
{
	struct error e;
	if (started->stage == FRAME_STAGE_USER)
		error_set_field(
			&e, ERROR_INVALID_FIELD, "user", "there is no such user in the sandbox");
	else
		error_set(&e, ERROR_RESOURCE_EXHAUSTED,
			"the sandbox has no room for another process: %s",
			strerror(started->error));
	call_fail(c, &e);
}

/* Maps an errno to the error of this operation. */
static void file_explain(const struct file_call *c, int error, const char *path, struct error *e)
{
	const char *verb = operations[c->op].verb;
	bool by_pattern = c->op == FILE_FIND || c->op == FILE_GREP || c->op == FILE_REPLACE;
	if (error == EINVAL && by_pattern)
		error_set_field(e, ERROR_INVALID_FIELD, "pattern", "'%.*s' is not a valid pattern",
			PATH_SHOWN, path);
	else if (error == EINVAL &&
		 (c->op == FILE_WRITE || c->op == FILE_CHOWN || c->op == FILE_MKDIR))
		error_set_field(e, ERROR_INVALID_FIELD, "owner",
			"there is no such user or group in the sandbox");
	else if (error == EINVAL && (c->op == FILE_MOVE || c->op == FILE_COPY))
		error_set(e, ERROR_INVALID_REQUEST, "cannot %s a directory into itself", verb);
	else if (error == ESRCH)
		error_set_field(
			e, ERROR_INVALID_FIELD, "user", "there is no such user in the sandbox");
	else if (error == ENXIO)
		error_set(e, ERROR_NOT_A_REGULAR_FILE, "cannot %s %.*s: it is not a regular file",
			verb, PATH_SHOWN, path);
	else if (error == EMFILE && c->op == FILE_WATCH)
		error_set(e, ERROR_RESOURCE_EXHAUSTED,
			"cannot watch %.*s: there are too many directories", PATH_SHOWN, path);
	else if (error == EXDEV && c->op == FILE_UNPACK)
		error_set(e, ERROR_INVALID_ARCHIVE,
			"the archive's '%.*s' leads out of the directory", PATH_SHOWN, path);
	else if (error == EBADMSG)
		error_set(e, ERROR_INVALID_ARCHIVE,
			"what was sent is not an archive that can be read, or is damaged");
	else
		error_set_errno(e, error, "cannot %s %.*s", verb, PATH_SHOWN, path);
}

bool file_call_is_given_all(const struct file_call *c)
{
	return !operations[c->op].input || c->input_ended || c->op == FILE_UNPACK;
}

void file_call_end(
	struct file_call *c, const struct record_end *end, const struct record_text *path)
{
	struct error e;
	struct file_result result = {.count = end->count, .truncated = end->truncated};
	if (end->error) {
		autobuf name = {0};
		buf_append(&name, path->data, path->len);
		buf_append_char(&name, '\0');
		file_explain(c, end->error, name.data && path->len ? name.data : c->path, &e);
	}
	/* Input that is still on the way would be the next request's. */
	if ((operations[c->op].input && (!c->input_ended || end->error)) || c->syncing)
		file_link_close(c->link);
	else
		file_link_idle(c->link);
	files_call_done(c, &result, end->error ? &e : NULL);
}

/* ---- patience ---- */

/* Silence counts only against a worker that waits for nothing. */
bool file_call_is_patient(const struct file_call *c)
{
	const struct sandbox *s = c->sandbox;
	bool waits_for_us = c->paused || s->pause.frozen || s->pause.pausing ||
			    (operations[c->op].input && !c->input_ended && c->link->out.len == 0);
	return waits_for_us || operations[c->op].slow;
}

bool file_call_is_paused(const struct file_call *c)
{
	return c->paused;
}

void file_pause(struct file_call *c)
{
	c->paused = true;
}

void file_resume(struct file_call *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	file_link_read(c->link);
}

/* ---- the begin ---- */

static bool is_asleep(const struct sandbox *s)
{
	return s->pause.pausing || s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
}

static int append_request(struct file_call *c, const struct file_request *request, struct error *e)
{
	struct file_request full = *request;
	/* With nothing else to do we sleep until the answer. */
	if (!operations[c->op].slow && c->sandbox->box->files.quick_calls == 1)
		full.fixed.near = processor_near();
	if (!full.text[FILE_CWD])
		full.text[FILE_CWD] = c->sandbox->workdir;
	int r = record_append_request(&c->link->out, &full);
	if (r == 0)
		return 0;
	return error_set(e, ERROR_INVALID_REQUEST, "the request's texts are too long together");
}

static struct file_call *call_new(struct sandbox *s, const struct file_request *request,
	const struct file_events *events, void *arg)
{
	struct file_call *c = mem_new(sizeof *c);
	const char *path = request->text[FILE_PATH];
	c->path = mem_copy_text(path ? path : "");
	c->sandbox = s;
	c->op = (enum file_op)request->fixed.op;
	c->with_attributes = request->fixed.flags & FILE_WITH_ATTRIBUTES;
	c->limit = request->fixed.limit;
	c->events = *events;
	c->arg = arg;
	s->files.inner++;
	s->box->files.quick_calls += !operations[c->op].slow;
	sandbox_execution_began(s);
	return c;
}

static int connect_now(struct file_call *c, struct error *e)
{
	int r = file_link_connect(c->link);
	if (r == 0)
		return 0;
	return error_set(
		e, ERROR_UNAVAILABLE, "the sandbox's init cannot be reached: %s", strerror(-r));
}

static int connect_link(struct file_call *c, struct error *e)
{
	return is_asleep(c->sandbox) ? 0 : connect_now(c, e);
}

int file_begin(struct sandbox *s, const char *user, const struct file_request *request,
	const struct file_events *events, void *arg, struct file_call **ret, struct error *e)
{
	if (user && strlen(user) >= FRAME_MAX_USER)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "user", "there is no such user in the sandbox");
	if (s->files.inner >= CALLS_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"%u operations on files are under way in the sandbox, the most that is allowed",
			s->files.inner);
	if (file_link_check(s, user ? user : s->user, e) < 0 || sandbox_wake(s, e) < 0)
		return -1;
	struct file_call *c = call_new(s, request, events, arg);
	c->link = file_link_take(s, user ? user : s->user, c);
	if (append_request(c, request, e) < 0 || connect_link(c, e) < 0) {
		file_cancel(c);
		return -1;
	}
	if (!operations[c->op].input)
		file_link_send(c->link, NULL, 0);
	*ret = c;
	return 0;
}

int file_begin_at_boot(struct sandbox *s, const char *user, const struct file_request *request,
	const struct file_events *events, void *arg, struct error *e)
{
	if (file_link_check(s, user, e) < 0)
		return -1;
	struct file_call *c = call_new(s, request, events, arg);
	c->link = file_link_take(s, user, c);
	if (append_request(c, request, e) < 0 || connect_now(c, e) < 0) {
		file_cancel(c);
		return -1;
	}
	file_link_send(c->link, NULL, 0);
	return 0;
}

/* ---- the sandbox's life ---- */

static void end_link(struct file_link *l, const struct error *e)
{
	struct file_call *c = l->call;
	file_link_close(l);
	if (c)
		call_fail(c, e);
}

void files_awake(struct sandbox *s)
{
	struct file_link *l, *next;
	DL_FOREACH_SAFE (s->files.links, l, next) {
		struct file_call *c = l->call;
		struct error e;
		if (!c || l->fd >= 0)
			continue;
		if (connect_link(c, &e) < 0) {
			end_link(l, &e);
			continue;
		}
		file_link_send(l, NULL, 0);
		file_call_has_room(c);
	}
}

void files_refuse_waiting(struct sandbox *s, const struct error *e)
{
	struct file_link *l, *next;
	DL_FOREACH_SAFE (s->files.links, l, next)
		if (l->fd < 0)
			end_link(l, e);
}

/*
 * Ends the current calls only: calls that their callbacks begin are for the next boot and are
 * appended.
 */
void files_end_all(struct sandbox *s, const struct error *e)
{
	struct file_link *l;
	unsigned count = 0;
	DL_FOREACH (s->files.links, l)
		count++;
	while (count-- > 0 && s->files.links)
		end_link(s->files.links, e);
}
