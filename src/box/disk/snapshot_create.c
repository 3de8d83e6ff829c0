/*
 * Making a snapshot: the disk first, while the sandbox stands still, then the row. What is on disk
 * without one was never acknowledged, and the next start deletes it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/disk/disks.h"
#include "box/sandbox/later.h"
#include "box/sandbox/turn.h"
#include "model/template.h"

struct creating {
	struct box *box;
	struct snapshot *snapshot; /* until it is stored */
	char id[ID_SIZE];
	struct sandbox *sandbox;
	int64_t frozen_us;
	bool measure;
	snapshot_created_fn *created;
	void *arg;
};

static void snapshot_create_failed(struct creating *c, const struct error *e)
{
	struct box *b = c->snapshot->box;
	b->disks.snapshots_pending--;
	disks_forget(b, DISK_SNAPSHOT, c->snapshot->id);
	snapshot_free(c->snapshot);
	c->created(c->arg, NULL, 0, e);
	free(c);
	box_check_closed(b);
}

static void create_done(struct creating *c, struct snapshot *s)
{
	struct error gone;
	if (!s)
		error_set(&gone, ERROR_NOT_FOUND, "the snapshot was deleted meanwhile");
	c->created(c->arg, s, s ? c->frozen_us : 0, s ? NULL : &gone);
	free(c);
}

/* Others could see it already, and delete it. */
static void create_measured(void *arg, const struct error *e)
{
	struct creating *c = arg;
	struct snapshot *s = NULL;
	(void)e;
	HASH_FIND(by_id, c->box->disks.snapshots, c->id, ID_LEN, s);
	create_done(c, s && !s->deleted ? s : NULL);
}

static void snapshot_create_stored(void *arg, int error)
{
	struct creating *c = arg;
	struct snapshot *s = c->snapshot;
	struct error e;
	if (error) {
		store_error(&e, error, "the snapshot could not be stored");
		snapshot_create_failed(c, &e);
		return;
	}
	s->box->disks.snapshots_pending--;
	s->found = true;
	if (c->measure) {
		snapshot_measure(s, create_measured, c);
	} else {
		create_done(c, s);
		snapshot_measure(s, NULL, NULL);
	}
}

static void snapshot_create_kept(void *arg, const struct keeper_reply *reply)
{
	struct creating *c = arg;
	struct snapshot *s = c->snapshot;
	struct sandbox *sandbox = c->sandbox;
	struct error e;
	if (reply->error == 0 && sandbox->listed)
		event_add(sandbox, EVENT_SNAPSHOTTED, CAUSE_REQUEST,
			(struct event_detail[]){{"snapshotId", s->id}, {NULL, NULL}});
	sandbox_release(sandbox);
	if (reply->error) {
		disks_error(&e, reply->error, "the snapshot could not be made");
		snapshot_create_failed(c, &e);
		return;
	}
	c->frozen_us = reply->frozen_us;
	s->created_ms = clock_wall_ms();
	snapshot_take_tag(s);
	snapshot_add(s);
	snapshot_store(s, snapshot_create_stored, c);
}

static void snapshot_create_has_turn(void *arg, struct sandbox *sandbox, const struct error *e)
{
	struct creating *c = arg;
	if (e) {
		snapshot_create_failed(c, e);
		return;
	}
	struct disk_name disk = disk_named(DISK_SNAPSHOT, c->snapshot->id), from = disk_of(sandbox);
	sandbox->box->driver->disk_keep(
		sandbox->box->driver, &disk, &from, snapshot_create_kept, c);
}

static int snapshot_create_check_quota(struct box *b, const char *tenant, struct error *e)
{
	unsigned count = b->disks.snapshots_pending;
	struct snapshot *s = snapshot_first(b, tenant, -1, "");
	for (; s; s = snapshot_next(s))
		count++;
	if (count >= SNAPSHOTS_PER_TENANT)
		return error_set(e, ERROR_QUOTA_EXCEEDED, "the limit of %d snapshots is reached",
			SNAPSHOTS_PER_TENANT);
	return 0;
}

static int check_spec(const struct snapshot_spec *spec, struct error *e)
{
	bool named = spec->name && spec->name[0];
	if (named && template_check_name(spec->name, "name", e) < 0)
		return -1;
	return spec->tag && spec->tag[0] ? template_check_tag(spec->tag, "tag", e) : 0;
}

int snapshot_check(
	struct box *b, const char *tenant, const struct snapshot_spec *spec, struct error *e)
{
	return check_spec(spec, e) < 0 ? -1 : snapshot_create_check_quota(b, tenant, e);
}

/* Inherits the variables of the snapshot that the sandbox began with. */
static void take_env(struct snapshot *s, const struct sandbox *of, const char *const *env)
{
	const struct snapshot *parent =
		of->snapshot[0] ? snapshot_find(of->box, of->tenant, of->snapshot) : NULL;
	struct buf packed = {0};
	for (; env && *env; env++)
		buf_append(&packed, *env, strlen(*env) + 1);
	if (!env && parent)
		buf_append(&packed, parent->env.data, parent->env.len);
	s->env = (struct strings){packed.data, packed.len};
}

int snapshot_create(struct sandbox *sandbox, const struct snapshot_spec *spec,
	snapshot_created_fn *created, void *arg, struct error *e)
{
	struct box *b = sandbox->box;
	char id[ID_SIZE];
	if (snapshot_check(b, sandbox->tenant, spec, e) < 0)
		return -1;
	id_generate(id);
	struct creating *c = mem_new(sizeof *c);
	struct snapshot *s = snapshot_new(b, id);
	bool named = spec->name && spec->name[0];
	s->tenant = sandbox_copy_string(sandbox->tenant);
	s->name = sandbox_copy_string(spec->name);
	s->tag = sandbox_copy_string(spec->tag ? spec->tag : named ? TEMPLATE_LATEST : "");
	s->description = sandbox_copy_string(spec->description);
	s->metadata = sandbox_copy_string(spec->metadata);
	take_env(s, sandbox, spec->env);
	s->template_name = sandbox_copy_string(sandbox->template_name);
	memcpy(s->parent, sandbox->snapshot, ID_SIZE);
	if (sandbox->listed) /* otherwise it is an import's builder */
		memcpy(s->sandbox, sandbox->id, ID_SIZE);
	memcpy(s->build, sandbox->build, ID_SIZE);
	memcpy(s->root, sandbox->root, ID_SIZE);
	*c = (struct creating){.box = b,
		.snapshot = s,
		.sandbox = sandbox,
		.measure = spec->measure,
		.created = created,
		.arg = arg};
	memcpy(c->id, id, ID_SIZE);
	b->disks.snapshots_pending++;
	sandbox_take_turn_for(sandbox, arg, snapshot_create_has_turn, c);
	return 0;
}
