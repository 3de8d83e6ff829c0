#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/disk/disks.h"
#include "box/sandbox/sandbox_row.h"
#include "box/sandbox/turn.h"

static struct checkpoint *checkpoint_new(struct sandbox *s, const char *id, const char *name)
{
	struct checkpoint *c = mem_new(sizeof *c);
	c->sandbox = s;
	memcpy(c->id, id, ID_SIZE);
	c->name = sandbox_copy_string(name);
	DL_APPEND(s->disk.checkpoints, c);
	s->disk.checkpoint_count++;
	return c;
}

static void checkpoint_free(struct checkpoint *c)
{
	DL_DELETE(c->sandbox->disk.checkpoints, c);
	c->sandbox->disk.checkpoint_count--;
	free(c->name);
	free(c);
}

/* Skips a checkpoint whose sandbox is gone: its disk is in no row and is removed. */
void checkpoint_from_row(struct box *b, const struct checkpoint_row *row)
{
	struct sandbox *s = NULL;
	HASH_FIND(by_id, b->sandboxes.by_id, row->sandbox, strlen(row->sandbox), s);
	if (!s || !id_is_valid(row->id)) {
		store_delete_checkpoint(b->store, row->id, NULL, NULL);
		return;
	}
	struct checkpoint *c = checkpoint_new(s, row->id, row->name);
	snprintf(c->parent, sizeof c->parent, "%s", row->parent);
	c->created_ms = row->created_ms;
	c->ready = true;
}

struct checkpoint *checkpoint_find(struct sandbox *s, const char *id_or_name)
{
	struct checkpoint *c;
	DL_FOREACH (s->disk.checkpoints, c)
		if (c->ready &&
			(strcmp(c->id, id_or_name) == 0 || strcmp(c->name, id_or_name) == 0))
			return c;
	return NULL;
}

static struct checkpoint *ready_from(struct checkpoint *c)
{
	while (c && !c->ready)
		c = c->next;
	return c;
}

struct checkpoint *checkpoint_first(struct sandbox *s)
{
	return ready_from(s->disk.checkpoints);
}

struct checkpoint *checkpoint_next(const struct checkpoint *c)
{
	return ready_from(c->next);
}

void checkpoint_view(const struct checkpoint *c, struct checkpoint_view *out)
{
	const struct checkpoint *parent =
		c->parent[0] ? checkpoint_find(c->sandbox, c->parent) : NULL;
	*out = (struct checkpoint_view){.id = c->id,
		.name = c->name,
		.parent = c->parent,
		.parent_name = parent ? parent->name : "",
		.created_ms = c->created_ms,
		.status = c->found ? DISK_READY : DISK_LOST};
}

/* ---- create ---- */

struct creating {
	struct checkpoint *checkpoint;
	int64_t frozen_us;
	checkpoint_created_fn *created;
	void *arg;
};

static void disk_checkpoint_create_failed(struct creating *c, const struct error *e)
{
	struct sandbox *s = c->checkpoint->sandbox;
	if (strcmp(s->checkpoint, c->checkpoint->id) == 0)
		memcpy(s->checkpoint, c->checkpoint->parent, ID_SIZE);
	disks_forget(s->box, DISK_CHECKPOINT, c->checkpoint->id);
	checkpoint_free(c->checkpoint);
	c->created(c->arg, NULL, 0, e);
	free(c);
	sandbox_release(s);
}

static void disk_checkpoint_create_stored(void *arg, int error)
{
	struct creating *c = arg;
	struct checkpoint *made = c->checkpoint;
	struct sandbox *s = made->sandbox;
	struct error e;
	if (error) {
		store_error(&e, error, "the checkpoint could not be stored");
		disk_checkpoint_create_failed(c, &e);
		return;
	}
	made->ready = made->found = true;
	c->created(c->arg, made, c->frozen_us, NULL);
	free(c);
	sandbox_release(s);
}

/*
 * Stores the checkpoint, the sandbox, which stands on it from now on, and the event: all or none.
 */
static void disk_checkpoint_create_kept(void *arg, const struct keeper_reply *reply)
{
	struct creating *c = arg;
	struct checkpoint *made = c->checkpoint;
	struct sandbox *s = made->sandbox;
	struct error e;
	if (reply->error) {
		disks_error(&e, reply->error, "the checkpoint could not be made");
		disk_checkpoint_create_failed(c, &e);
		return;
	}
	c->frozen_us = reply->frozen_us;
	made->created_ms = clock_wall_ms();
	memcpy(made->parent, s->checkpoint, ID_SIZE);
	memcpy(s->checkpoint, made->id, ID_SIZE);
	event_add(s, EVENT_CHECKPOINTED, CAUSE_REQUEST,
		(struct event_detail[]){
			{"checkpointId", made->id}, {"name", made->name}, {NULL, NULL}});
	sandbox_store(s, s->intent, NULL, NULL);
	store_put_checkpoint(s->box->store,
		&(struct checkpoint_row){
			made->id, s->id, made->name, made->parent, made->created_ms},
		disk_checkpoint_create_stored, c);
}

static void disk_checkpoint_create_has_turn(void *arg, struct sandbox *s, const struct error *e)
{
	struct creating *c = arg;
	if (e) {
		checkpoint_free(c->checkpoint);
		c->created(c->arg, NULL, 0, e);
		free(c);
		return;
	}
	struct disk_name disk = disk_named(DISK_CHECKPOINT, c->checkpoint->id), from = disk_of(s);
	s->box->driver->disk_keep(s->box->driver, &disk, &from, disk_checkpoint_create_kept, c);
}

int checkpoint_create(struct sandbox *s, const char *name, checkpoint_created_fn *created,
	void *arg, struct error *e)
{
	char id[ID_SIZE];
	struct checkpoint *other;
	if (s->disk.checkpoint_count >= CHECKPOINTS_PER_SANDBOX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the limit of %d checkpoints of a sandbox is reached",
			CHECKPOINTS_PER_SANDBOX);
	DL_FOREACH (s->disk.checkpoints, other)
		if (strcmp(other->name, name) == 0)
			return error_set_field(e, ERROR_NAME_TAKEN, "name",
				"a checkpoint with the name '%.64s' exists already", name);
	struct creating *c = mem_new(sizeof *c);
	id_generate(id);
	*c = (struct creating){checkpoint_new(s, id, name), 0, created, arg};
	sandbox_take_turn_for(s, arg, disk_checkpoint_create_has_turn, c);
	return 0;
}

/* ---- restore ---- */

int checkpoint_restore(struct checkpoint *c, sandbox_done_fn *done, void *arg, struct error *e)
{
	if (!c->found)
		return error_set(e, ERROR_INTERNAL, "the disk of this checkpoint is gone");
	struct disk_name from = disk_named(DISK_CHECKPOINT, c->id);
	sandbox_swap_disk(c->sandbox, &from, done, arg);
	return 0;
}

/* ---- delete ---- */

struct deleting {
	struct checkpoint *checkpoint;
	sandbox_done_fn *done;
	void *arg;
};

static void disk_checkpoint_delete_stored(void *arg, int error)
{
	struct deleting *d = arg;
	struct sandbox *s = d->checkpoint->sandbox;
	struct error e;
	if (error) {
		d->checkpoint->ready = true;
		store_error(&e, error, "the checkpoint could not be deleted");
	} else {
		disks_forget(s->box, DISK_CHECKPOINT, d->checkpoint->id);
		checkpoint_free(d->checkpoint);
	}
	d->done(d->arg, error ? &e : NULL);
	free(d);
	sandbox_release(s);
}

/* A restore from it may be under way. */
static void delete_has_turn(void *arg, struct sandbox *s, const struct error *e)
{
	struct deleting *d = arg;
	if (e) {
		d->checkpoint->ready = true;
		d->done(d->arg,
			s->ending.doomed ? NULL : e); /* the whole sandbox goes, or it stays */
		free(d);
		return;
	}
	store_delete_checkpoint(s->box->store, d->checkpoint->id, disk_checkpoint_delete_stored, d);
}

void checkpoint_delete(struct checkpoint *c, sandbox_done_fn *done, void *arg)
{
	struct deleting *d = mem_new(sizeof *d);
	*d = (struct deleting){c, done, arg};
	c->ready = false;
	sandbox_take_turn(c->sandbox, delete_has_turn, d);
}

static void checkpoints_discard(struct sandbox *s)
{
	if (!s->disk.checkpoints)
		return;
	store_delete_checkpoints(s->box->store, s->id);
	while (s->disk.checkpoints) {
		disks_forget(s->box, DISK_CHECKPOINT, s->disk.checkpoints->id);
		checkpoint_free(s->disk.checkpoints);
	}
}

static void checkpoints_free(struct sandbox *s)
{
	while (s->disk.checkpoints)
		checkpoint_free(s->disk.checkpoints);
}

const struct sandbox_part disk_part = {
	.destroyed = checkpoints_discard,
	.free = checkpoints_free,
};
