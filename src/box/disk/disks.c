/*
 * Copies of disks at the start of the server: rows and disks are brought together. A copy is made
 * before its row is committed, and its row goes before it: so what is on disk but in no row was
 * never acknowledged, or was being deleted; or the database is older than the disk, because it came
 * from a backup. It is not removed but set aside for a day (keeper/aside.c).
 */
#include "box/disk/disks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/log.h"
#include "base/mem.h"

static void add_checkpoint(void *arg, const void *row)
{
	checkpoint_from_row(arg, row);
}

static void add_snapshot(void *arg, const void *found)
{
	const struct snapshot_record *row = found;
	if (id_is_valid(row->id))
		snapshot_from_row(arg, row);
}

static void add_volume(void *arg, const void *found)
{
	const struct volume_row *row = found;
	if (id_is_valid(row->id))
		volume_from_row(arg, row);
}

int disks_load(struct box *b)
{
	if (store_each_checkpoint(b->store, add_checkpoint, b) < 0 ||
		store_each_volume(b->store, add_volume, b) < 0)
		return -1;
	return store_each_snapshot(b->store, add_snapshot, b);
}

/* ---- what is on disk ---- */

struct reconciliation {
	struct box *box;
	enum disk_kind kind;
	void (*done)(struct box *b);
};

static void list_disks(struct reconciliation *r, const char *after);

static bool *found_flag(struct box *b, enum disk_kind kind, const char *id)
{
	struct snapshot *snapshot = NULL;
	struct sandbox *s;
	struct checkpoint *c;
	struct volume *v;
	if (kind == DISK_VOLUME) {
		DL_FOREACH (b->disks.volumes, v)
			if (strcmp(v->id, id) == 0)
				return &v->found;
		return NULL;
	}
	if (kind == DISK_SNAPSHOT) {
		HASH_FIND(by_id, b->disks.snapshots, id, ID_LEN, snapshot);
		return snapshot && !snapshot->deleted ? &snapshot->found : NULL;
	}
	DL_FOREACH (b->sandboxes.order, s)
		DL_FOREACH (s->disk.checkpoints, c)
			if (strcmp(c->id, id) == 0)
				return &c->found;
	return NULL;
}

static void report_lost(struct box *b)
{
	struct volume *v;
	struct snapshot *snapshot;
	struct sandbox *s;
	struct checkpoint *c;
	DL_FOREACH (b->disks.snapshot_order, snapshot) {
		if (!snapshot->found && !snapshot->deleted)
			log_error("the disk of a snapshot is gone", "snapshot", snapshot->id);
		else if (snapshot->files < 0 && !snapshot->deleted)
			snapshot_measure(snapshot, NULL, NULL);
	}
	DL_FOREACH (b->disks.volumes, v)
		if (!v->found)
			log_error("the disk of a volume is gone", "volume", v->id);
	DL_FOREACH (b->sandboxes.order, s)
		DL_FOREACH (s->disk.checkpoints, c)
			if (!c->found)
				log_error("the disk of a checkpoint is gone", "sandbox", s->id,
					"checkpoint", c->id);
}

static void disks_listed(void *arg, const struct keeper_reply *reply)
{
	struct reconciliation *r = arg;
	struct box *b = r->box;
	if (reply->error || !reply->id[0]) {
		if (r->kind != DISK_VOLUME) {
			r->kind = r->kind == DISK_CHECKPOINT ? DISK_SNAPSHOT : DISK_VOLUME;
			list_disks(r, "");
			return;
		}
		report_lost(b);
		r->done(b);
		free(r);
		return;
	}
	bool *found = found_flag(b, r->kind, reply->id);
	if (found)
		*found = true;
	else
		disks_set_aside(b, r->kind, reply->id, NULL, NULL);
	list_disks(r, reply->id);
}

static void list_disks(struct reconciliation *r, const char *after)
{
	struct disk_name disk = disk_named(r->kind, after);
	r->box->driver->disk_next(r->box->driver, &disk, disks_listed, r);
}

void disks_reconcile(struct box *b, void (*done)(struct box *b))
{
	struct reconciliation *r = mem_new(sizeof *r);
	*r = (struct reconciliation){b, DISK_CHECKPOINT, done};
	list_disks(r, "");
}

void disks_free(struct box *b)
{
	struct snapshot *s, *next;
	DL_FOREACH_SAFE (b->disks.snapshot_order, s, next)
		snapshot_free(s);
	while (b->disks.volumes)
		volume_free(b->disks.volumes);
}
