/*
 * The answers of a file worker: records, parsed as hostile input and told as events. Receivers rely
 * on the table below: a record that comes once comes once, before what it describes, and has come
 * when the call ends well. A record that the operation does not have, that comes too often or too
 * early, or that does not decode, ends the sandbox.
 */
#include <errno.h>
#include <string.h>

#include "box/files/file_call.h"

/* Says how often a record may come. */
enum answer_count {
	ANSWER_ONCE,      /* neither more nor less */
	ANSWER_PER_FILE,  /* once for each file that was given */
	ANSWER_TO_LIMIT,  /* at most as often as the request's limit says */
	ANSWER_ANY_NUMBER /* DATA: as many bytes as CONTENT has said */
};

struct answer_step {
	enum record_type type; /* 0: the answer has no more steps */
	enum answer_count count;
};

#define ANSWER_STEPS 4

/* The records of each operation's answer, in their order, up to the END of a call that went well.
 * One that fails may end anywhere. */
static const struct answer_step answers[FILE_OP_END][ANSWER_STEPS] = {
	[FILE_READ] = {{RECORD_ENTRY, ANSWER_ONCE}, {RECORD_CONTENT, ANSWER_ONCE},
		{RECORD_DATA, ANSWER_ANY_NUMBER}},
	[FILE_WRITE] = {{RECORD_ENTRY, ANSWER_PER_FILE}},
	[FILE_STAT] = {{RECORD_ENTRY, ANSWER_ONCE}},
	[FILE_LIST] = {{RECORD_ENTRY, ANSWER_TO_LIMIT}},
	[FILE_MKDIR] = {{RECORD_ENTRY, ANSWER_ONCE}},
	[FILE_MOVE] = {{RECORD_ENTRY, ANSWER_ONCE}},
	[FILE_COPY] = {{RECORD_ENTRY, ANSWER_ONCE}},
	[FILE_REMOVE] = {{0}},
	[FILE_CHMOD] = {{RECORD_ENTRY, ANSWER_ONCE}},
	[FILE_CHOWN] = {{RECORD_ENTRY, ANSWER_ONCE}},
	[FILE_SYMLINK] = {{RECORD_ENTRY, ANSWER_ONCE}},
	[FILE_FIND] = {{RECORD_ENTRY, ANSWER_TO_LIMIT}},
	[FILE_GREP] = {{RECORD_MATCH, ANSWER_TO_LIMIT}},
	[FILE_REPLACE] = {{RECORD_CHANGE, ANSWER_TO_LIMIT}},
	[FILE_ATTRIBUTES] = {{RECORD_ATTRIBUTE, ANSWER_ANY_NUMBER}},
	[FILE_PACK] = {{RECORD_CONTENT, ANSWER_ONCE}, {RECORD_DATA, ANSWER_ANY_NUMBER}},
	[FILE_UNPACK] = {{RECORD_ENTRY, ANSWER_TO_LIMIT}},
	[FILE_WATCH] = {{RECORD_READY, ANSWER_ONCE}, {RECORD_EVENT, ANSWER_ANY_NUMBER}},
	[FILE_ROOT] = {{0}},
	[FILE_TRUST] = {{0}},
};

static uint64_t answer_most(const struct file_call *c, enum answer_count count)
{
	switch (count) {
	case ANSWER_ONCE:
		return 1;
	case ANSWER_PER_FILE:
		return c->files_given;
	case ANSWER_TO_LIMIT:
		return c->limit;
	default:
		return UINT64_MAX;
	}
}

static uint64_t answer_least(const struct file_call *c, enum answer_count count)
{
	return count == ANSWER_ONCE || count == ANSWER_PER_FILE ? answer_most(c, count) : 0;
}

/* Whether the step has been answered as often as it must be. */
static bool answer_is_enough(const struct file_call *c, const struct answer_step *step)
{
	return c->answer.taken >= answer_least(c, step->count);
}

/* A record of this type is taken next; -EPROTO: it has no place here. */
static int answer_expect(struct file_call *c, enum record_type type)
{
	struct file_answer *a = &c->answer;
	const struct answer_step *step = &answers[c->op][a->step];
	bool describes_entry = step->type == RECORD_ENTRY && a->taken > 0;
	if (type == RECORD_ATTRIBUTE && c->with_attributes && describes_entry)
		return 0;
	/* Between EVENTs, as often as it was asked for. */
	if (type == RECORD_SYNCED && c->syncing)
		return 0;
	for (; step->type; step++, a->step++, a->taken = 0) {
		if (step->type == type && a->taken < answer_most(c, step->count)) {
			a->taken++;
			return 0;
		}
		if (!answer_is_enough(c, step))
			return -EPROTO;
	}
	return -EPROTO;
}

/* Whether the call may end well now. */
static bool answer_is_whole(struct file_call *c)
{
	struct file_answer *a = &c->answer;
	for (const struct answer_step *step = &answers[c->op][a->step]; step->type;
		step++, a->taken = 0)
		if (!answer_is_enough(c, step))
			return false;
	return file_call_is_given_all(c) && (a->promised == 0 || a->promised == RECORD_UNKNOWN);
}

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
	if (record_decode_entry(payload, size, &r, t) < 0 || copy_texts(t, 4, &memory, texts) < 0)
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
	if (c->events.entry)
		c->events.entry(c->arg, &entry);
	return 0;
}

static int take_content(struct file_call *c, const char *payload, size_t size)
{
	struct record_content r;
	if (record_decode_content(payload, size, &r) < 0)
		return -EPROTO;
	c->answer.promised = r.length;
	if (c->events.content)
		c->events.content(c->arg, r.length, r.offset);
	return 0;
}

static int take_match(struct file_call *c, const char *payload, size_t size)
{
	struct record_match r;
	struct record_text t[2];
	const char *path;
	autobuf memory = {0};
	if (record_decode_match(payload, size, &r, t) < 0 || copy_texts(t, 1, &memory, &path) < 0)
		return -EPROTO;
	struct file_match match = {path, r.line, r.column, t[1].data, t[1].len, r.cut != 0};
	if (c->events.match)
		c->events.match(c->arg, &match);
	return 0;
}

static int file_answer_take_change(struct file_call *c, const char *payload, size_t size)
{
	struct record_change r;
	struct record_text t[1];
	const char *path;
	autobuf memory = {0};
	if (record_decode_change(payload, size, &r, t) < 0 || copy_texts(t, 1, &memory, &path) < 0)
		return -EPROTO;
	if (c->events.change)
		c->events.change(c->arg, &(struct file_change){path, r.count});
	return 0;
}

static int take_attribute(struct file_call *c, const char *payload, size_t size)
{
	struct record_attribute r;
	struct record_text t[2];
	const char *name;
	autobuf memory = {0};
	if (record_decode_attribute(payload, size, &r, t) < 0 ||
		copy_texts(t, 1, &memory, &name) < 0 || strncmp(name, "user.", 5) != 0)
		return -EPROTO;
	if (c->events.attribute)
		c->events.attribute(
			c->arg, &(struct file_attribute){name + 5, t[1].data, t[1].len});
	return 0;
}

static int take_event(struct file_call *c, const char *payload, size_t size)
{
	struct record_event r;
	struct record_text t[2];
	const char *paths[2];
	autobuf memory = {0};
	if (record_decode_event(payload, size, &r, t) < 0 || copy_texts(t, 2, &memory, paths) < 0)
		return -EPROTO;
	struct file_notice notice = {(enum file_event)r.kind, r.directory != 0, paths[0], paths[1]};
	if (c->events.notice)
		c->events.notice(c->arg, &notice);
	return 0;
}

static int take_ready(struct file_call *c, size_t size)
{
	if (size != 0)
		return -EPROTO;
	if (c->events.ready)
		c->events.ready(c->arg);
	return 0;
}

static int take_synced(struct file_call *c, size_t size)
{
	if (size != 0)
		return -EPROTO;
	c->syncing = false;
	c->events.synced(c->arg);
	return 0;
}

static int take_end(struct file_call *c, const char *payload, size_t size)
{
	struct record_end end;
	struct record_text t[1];
	if (record_decode_end(payload, size, &end, t) < 0 || (!end.error && !answer_is_whole(c)))
		return -EPROTO;
	file_call_end(c, &end, &t[0]);
	return 0;
}

int file_call_record(struct file_call *c, const struct record_header *h, const char *payload)
{
	size_t size = (size_t)h->size;
	if (h->type == RECORD_END)
		return take_end(c, payload, size);
	if (answer_expect(c, (enum record_type)h->type) < 0)
		return -EPROTO;
	switch (h->type) {
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
	case RECORD_SYNCED:
		return take_synced(c, size);
	case RECORD_EVENT:
		return take_event(c, payload, size);
	default:
		return -EPROTO;
	}
}

int file_call_expect_data(struct file_call *c, uint64_t size)
{
	if (answer_expect(c, RECORD_DATA) < 0 || size > c->answer.promised)
		return -EPROTO;
	if (c->answer.promised != RECORD_UNKNOWN)
		c->answer.promised -= size;
	return 0;
}

void file_call_data(struct file_call *c, struct buf *bytes)
{
	if (c->events.data)
		c->events.data(c->arg, bytes);
}
