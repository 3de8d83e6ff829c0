/*
 * What a file worker answers: records, taken apart with every byte under suspicion, and told as
 * events. One that the operation does not have, or that does not decode, ends the link.
 */
#include <errno.h>
#include <string.h>

#include "box/files/file_call.h"

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

static int file_answer_take_change(struct file_call *c, const char *payload, size_t size)
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
		return file_call_end(c, h, payload);
	case RECORD_ENTRY:
		return take_entry(c, payload, size);
	case RECORD_CONTENT:
		return take_content(c, payload, size);
	case RECORD_MATCH:
		return take_match(c, payload, size);
	case RECORD_CHANGE:
		return file_answer_take_change(c, payload, size);
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
