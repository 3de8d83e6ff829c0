/*
 * Calls: a request to a file worker, what it answers, and how it ends.
 *
 * A sandbox that sleeps is woken for a call, which then waits in its link's buffer. A call that is
 * cancelled, or whose input did not come to its end, takes its link with it: the worker sees that
 * nobody is there any more, and cleans up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/processor.h"
#include "box/file_link.h"

#define CALLS_MAX  256 /* at once in a sandbox; fewer than init has workers */
#define ROOM       (256u * 1024)
#define HELD_MAX   (32u * 1024) /* of input, until there is more or it ends */
#define PATH_SHOWN 160

/* How an operation is called in errors, and how it behaves. */
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
};

struct file_call {
	struct sandbox *sandbox;
	struct file_link *link;
	struct file_events events;
	void *arg;
	enum file_op op;
	char *path; /* for errors */
	bool paused;
	bool input_ended;
	bool wants_room;
	uint64_t announced; /* of the DATA record that is being sent, what is left */
};

/* ---- the end ---- */

/* The link is no longer its. */
static void call_free(struct file_call *c)
{
	c->sandbox->box->quick_file_calls -= !operations[c->op].slow;
	c->sandbox->inner--;
	sandbox_execution_ended(c->sandbox);
	free(c->path);
	free(c);
}

static void call_done(struct file_call *c, const struct file_result *result, const struct error *e)
{
	void (*done)(void *, const struct file_result *, const struct error *) = c->events.done;
	void *arg = c->arg;
	call_free(c);
	done(arg, result, e);
}

static void call_fail(struct file_call *c, const struct error *e)
{
	call_done(c, &(struct file_result){0}, e);
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

/* What an errno means for this operation. */
static void explain(const struct file_call *c, int error, const char *path, struct error *e)
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

static int take_end(struct file_call *c, const struct record_header *h, const char *payload)
{
	struct record_end end;
	struct record_text t[1];
	struct error e;
	if (record_decode_end(payload, (size_t)h->size, &end, t) < 0)
		return -EPROTO;
	struct file_result result = {.count = end.count, .truncated = end.truncated};
	if (end.error) {
		autobuf path = {0};
		buf_append(&path, t[0].data, t[0].len);
		buf_append_char(&path, '\0');
		explain(c, end.error, path.data && t[0].len ? path.data : c->path, &e);
	}
	/* Input that is still on the way would be the next request's. */
	if (operations[c->op].input && (!c->input_ended || end.error))
		file_link_close(c->link);
	else
		file_link_idle(c->link);
	call_done(c, &result, end.error ? &e : NULL);
	return 0;
}

/* ---- what is found ---- */

/* The texts one behind the other, each with a NUL: names cannot have one. */
static int copy_texts(
	const struct record_text *texts, size_t count, struct buf *memory, const char **out)
{
	size_t size = 0;
	for (size_t i = 0; i < count; i++)
		size += texts[i].len + 1;
	if (!buf_reserve(memory, size))
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		out[i] = memory->data + memory->len;
		buf_append(memory, texts[i].data, texts[i].len);
		buf_append_char(memory, '\0');
	}
	return 0;
}

static int take_entry(struct file_call *c, const char *payload, size_t size)
{
	struct record_entry r;
	struct record_text t[4];
	const char *texts[4];
	autobuf memory = {0};
	if (!c->events.entry || record_decode_entry(payload, size, &r, t) < 0 ||
		copy_texts(t, 4, &memory, texts) < 0)
		return -EPROTO;
	struct file_entry entry = {
		.path = texts[0],
		.target = texts[1],
		.owner = texts[2],
		.group = texts[3],
		.size = r.size,
		.inode = r.inode,
		.mode = r.mode,
		.uid = r.uid,
		.gid = r.gid,
		.links = r.links,
		.mtime_ns = r.mtime_ns,
		.atime_ns = r.atime_ns,
		.ctime_ns = r.ctime_ns,
	};
	c->events.entry(c->arg, &entry);
	return 0;
}

static int take_content(struct file_call *c, const char *payload, size_t size)
{
	struct record_content r;
	if (!c->events.content || record_decode_content(payload, size, &r) < 0)
		return -EPROTO;
	c->events.content(c->arg, r.length, r.offset);
	return 0;
}

static int take_match(struct file_call *c, const char *payload, size_t size)
{
	struct record_match r;
	struct record_text t[2];
	const char *path;
	autobuf memory = {0};
	if (!c->events.match || record_decode_match(payload, size, &r, t) < 0 ||
		copy_texts(t, 1, &memory, &path) < 0)
		return -EPROTO;
	struct file_match match = {path, r.line, r.column, t[1].data, t[1].len, r.cut != 0};
	c->events.match(c->arg, &match);
	return 0;
}

static int take_change(struct file_call *c, const char *payload, size_t size)
{
	struct record_change r;
	struct record_text t[1];
	const char *path;
	autobuf memory = {0};
	if (!c->events.change || record_decode_change(payload, size, &r, t) < 0 ||
		copy_texts(t, 1, &memory, &path) < 0)
		return -EPROTO;
	c->events.change(c->arg, &(struct file_change){path, r.count});
	return 0;
}

static int take_attribute(struct file_call *c, const char *payload, size_t size)
{
	struct record_attribute r;
	struct record_text t[2];
	const char *name;
	autobuf memory = {0};
	if (!c->events.attribute || record_decode_attribute(payload, size, &r, t) < 0 ||
		copy_texts(t, 1, &memory, &name) < 0 || strncmp(name, "user.", 5) != 0)
		return -EPROTO;
	c->events.attribute(c->arg, &(struct file_attribute){name + 5, t[1].data, t[1].len});
	return 0;
}

static int take_event(struct file_call *c, const char *payload, size_t size)
{
	struct record_event r;
	struct record_text t[2];
	const char *paths[2];
	autobuf memory = {0};
	if (!c->events.notice || record_decode_event(payload, size, &r, t) < 0 ||
		copy_texts(t, 2, &memory, paths) < 0)
		return -EPROTO;
	struct file_notice notice = {(enum file_event)r.kind, r.directory != 0, paths[0], paths[1]};
	c->events.notice(c->arg, &notice);
	return 0;
}

static int take_ready(struct file_call *c, size_t size)
{
	if (!c->events.ready || size != 0)
		return -EPROTO;
	c->events.ready(c->arg);
	return 0;
}

int file_call_record(struct file_call *c, const struct record_header *h, const char *payload)
{
	size_t size = (size_t)h->size;
	switch (h->type) {
	case RECORD_END:
		return take_end(c, h, payload);
	case RECORD_ENTRY:
		return take_entry(c, payload, size);
	case RECORD_CONTENT:
		return take_content(c, payload, size);
	case RECORD_MATCH:
		return take_match(c, payload, size);
	case RECORD_CHANGE:
		return take_change(c, payload, size);
	case RECORD_ATTRIBUTE:
		return take_attribute(c, payload, size);
	case RECORD_READY:
		return take_ready(c, size);
	case RECORD_EVENT:
		return take_event(c, payload, size);
	default:
		return -EPROTO;
	}
}

void file_call_data(struct file_call *c, struct buf *bytes)
{
	if (c->events.data)
		c->events.data(c->arg, bytes);
}

/* ---- patience ---- */

/* Only who has all he needs is expected to say something. */
bool file_call_is_patient(const struct file_call *c)
{
	const struct sandbox *s = c->sandbox;
	bool waits_for_us = c->paused || s->frozen || s->pausing ||
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

/* ---- input ---- */

size_t file_room(const struct file_call *c)
{
	return c->link->out.len < ROOM ? ROOM - c->link->out.len : 0;
}

void file_call_has_room(struct file_call *c)
{
	if (!c->wants_room || c->link->out.len > ROOM / 2)
		return;
	c->wants_room = false;
	if (c->events.room)
		c->events.room(c->arg);
}

void file_put_target(struct file_call *c, const struct file_target *t)
{
	const char *owner = t->owner ? t->owner : "";
	struct record_file file = {
		.flags = t->flags,
		.mode = t->mode,
		.offset = t->offset,
		.path_len = (uint32_t)strlen(t->path),
		.owner_len = (uint32_t)strlen(owner),
	};
	struct record_text texts[] = {{t->path, file.path_len}, {owner, file.owner_len}};
	record_append(&c->link->out, RECORD_FILE, &file, sizeof file, texts, 2);
}

void file_put_length(struct file_call *c, uint64_t length)
{
	record_append_header(&c->link->out, RECORD_DATA, length);
	c->announced = length;
}

void file_put_data(struct file_call *c, const char *bytes, size_t len)
{
	if (c->announced == 0)
		file_put_length(c, len);
	c->announced -= len < c->announced ? len : c->announced;
	if (c->link->out.len + len <= HELD_MAX)
		buf_append(&c->link->out, bytes, len);
	else
		file_link_send(c->link, bytes, len);
	c->wants_room = file_room(c) == 0;
}

void file_put_attribute(struct file_call *c, const char *name, const char *value, size_t len)
{
	autobuf full = {0};
	buf_append_str(&full, "user.");
	buf_append_str(&full, name);
	struct record_attribute a = {(uint32_t)full.len, value ? (uint32_t)len : RECORD_REMOVED};
	struct record_text texts[] = {{full.data, full.len}, {value, value ? len : 0}};
	record_append(&c->link->out, RECORD_ATTRIBUTE, &a, sizeof a, texts, 2);
}

void file_put_done(struct file_call *c)
{
	record_append_header(&c->link->out, RECORD_DONE, 0);
}

void file_put_end(struct file_call *c)
{
	struct record_end end = {0};
	record_append(&c->link->out, RECORD_END, &end, sizeof end, NULL, 0);
	c->input_ended = true;
	file_link_send(c->link, NULL, 0);
}

/* ---- the begin ---- */

static bool is_asleep(const struct sandbox *s)
{
	return s->pausing || s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
}

static int append_request(struct file_call *c, const struct file_request *request, struct error *e)
{
	struct file_request full = *request;
	/* With nothing else to do we sleep until the answer. */
	if (!operations[c->op].slow && c->sandbox->box->quick_file_calls == 1)
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
	struct file_call *c = calloc(1, sizeof *c);
	const char *path = request->text[FILE_PATH];
	if (!c || !(c->path = strdup(path ? path : "")))
		abort();
	c->sandbox = s;
	c->op = (enum file_op)request->fixed.op;
	c->events = *events;
	c->arg = arg;
	s->inner++;
	s->box->quick_file_calls += !operations[c->op].slow;
	sandbox_execution_began(s);
	return c;
}

static int connect_link(struct file_call *c, struct error *e)
{
	int r = is_asleep(c->sandbox) ? 0 : file_link_connect(c->link);
	if (r == 0)
		return 0;
	return error_set(
		e, ERROR_UNAVAILABLE, "the sandbox's init cannot be reached: %s", strerror(-r));
}

int file_begin(struct sandbox *s, const char *user, const struct file_request *request,
	const struct file_events *events, void *arg, struct file_call **ret, struct error *e)
{
	if (user && strlen(user) >= FRAME_MAX_USER)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "user", "there is no such user in the sandbox");
	if (s->inner >= CALLS_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"%u operations on files are under way in the sandbox, the most that is allowed",
			s->inner);
	if (sandbox_wake(s, e) < 0)
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
	DL_FOREACH_SAFE (s->file_links, l, next) {
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
	DL_FOREACH_SAFE (s->file_links, l, next)
		if (l->fd < 0)
			end_link(l, e);
}

/* Those of now: what their callbacks begin is for the next boot, and comes behind them. */
void files_end_all(struct sandbox *s, const struct error *e)
{
	struct file_link *l;
	unsigned count = 0;
	DL_FOREACH (s->file_links, l)
		count++;
	while (count-- > 0 && s->file_links)
		end_link(s->file_links, e);
}
