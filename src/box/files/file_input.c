/*
 * Input of a file call, as records in its link's buffer. Small pieces are held until there is more
 * or it ends, so that a small file is one system call.
 */
#include <string.h>

#include "box/files/file_call.h"
#include "box/files/files.h"

#define ROOM     (256u * 1024)
#define HELD_MAX (32u * 1024) /* of input, until there is more or it ends */

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

/* A caller that finds no room waits until it is told of some. */
static void file_input_note_room(struct file_call *c)
{
	c->wants_room = file_room(c) == 0;
}

/* Many empty files are nothing but names, which must not wait for data that never comes. */
static void file_input_hold(struct file_call *c)
{
	if (c->link->out.len > HELD_MAX)
		file_link_send(c->link, NULL, 0);
	file_input_note_room(c);
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
	file_input_hold(c);
}

void file_put_length(struct file_call *c, uint64_t length)
{
	record_append_header(&c->link->out, RECORD_DATA, length);
	c->announced = length;
	file_input_note_room(c);
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
	file_input_note_room(c);
}

void file_put_attribute(struct file_call *c, const char *name, const char *value, size_t len)
{
	autobuf full = {0};
	buf_append_str(&full, "user.");
	buf_append_str(&full, name);
	struct record_attribute a = {(uint32_t)full.len, value ? (uint32_t)len : RECORD_REMOVED};
	struct record_text texts[] = {{full.data, full.len}, {value, value ? len : 0}};
	record_append(&c->link->out, RECORD_ATTRIBUTE, &a, sizeof a, texts, 2);
	file_input_hold(c);
}

void file_put_done(struct file_call *c)
{
	record_append_header(&c->link->out, RECORD_DONE, 0);
	c->files_given++;
	file_input_hold(c);
}

void file_put_sync(struct file_call *c)
{
	record_append_header(&c->link->out, RECORD_SYNC, 0);
	c->syncing = true;
	file_link_send(c->link, NULL, 0);
}

void file_put_end(struct file_call *c)
{
	struct record_end end = {0};
	record_append(&c->link->out, RECORD_END, &end, sizeof end, NULL, 0);
	c->input_ended = true;
	file_link_send(c->link, NULL, 0);
}
