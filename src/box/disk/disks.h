/* Shared by the files about copies of disks: checkpoints, snapshots, forks. */
#pragma once

#include "box/disk/checkpoint.h"
#include "box/disk/snapshot.h"
#include "box/disk/volume.h"
#include "box/sandbox/disk_name.h"
#include "box/sandbox/object.h"
#include "store/snapshots.h"
#include "store/volumes.h"

struct checkpoint {
	struct sandbox *sandbox;
	char id[ID_SIZE];
	char *name;
	char parent[ID_SIZE];
	int64_t created_ms;
	bool ready;                     /* it is stored and not being deleted */
	bool found;                     /* its disk is there */
	struct checkpoint *prev, *next; /* of the sandbox */
};

struct snapshot {
	struct box *box;
	union {
		struct snapshot_record record;
		struct snapshot_record;
	};
	bool listed;                  /* in the tables */
	bool found;                   /* its disk is there */
	struct snapshot *prev, *next; /* of the box, by time and id */
	UT_hash_handle by_id;
};

struct volume {
	struct box *box;
	char id[ID_SIZE];
	char *tenant, *name;
	int64_t limit, created_ms;
	bool ready;                 /* it is stored and not being deleted */
	bool found;                 /* its disk is there */
	struct porter *porter;      /* the porter that does file work on it, or NULL */
	struct deleting *deleting;  /* waits for the last porter */
	struct volume *prev, *next; /* of the box, by time */
};

/* ---- disks.c: the start ---- */

/* The rows; before the loop runs, after the sandboxes. */
int disks_load(struct box *b);
/* Sets aside disks that no row names, and marks rows whose disk is missing as lost. */
void disks_reconcile(struct box *b, void (*done)(struct box *b));
void disks_free(struct box *b);

/* ---- volume_files.c ---- */

/* Calls under way end with e. */
void volume_send_porter_away(struct volume *v, const struct error *e);
/* Returns true also for a porter that is leaving. */
bool volume_has_porter(const struct volume *v);
void porters_stop(struct box *b);
/* In volume.c: one has left. */
void volume_porter_gone(struct volume *v);

/* ---- restore.c ---- */

/*
 * The sandbox's disk becomes a copy of `from`, or with DISK_NONE an empty one. Its processes end;
 * one that was awake is booted again, any other is suspended afterwards.
 */
void sandbox_swap_disk(
	struct sandbox *s, const struct disk_name *from, sandbox_done_fn *done, void *arg);

/* ---- checkpoint.c ---- */

void checkpoint_from_row(struct box *b, const struct checkpoint_row *row);
extern const struct sandbox_part disk_part;

/* ---- snapshot.c ---- */

struct snapshot *snapshot_new(struct box *b, const char *id);
void snapshot_from_row(struct box *b, const struct snapshot_record *row);
void snapshot_free(struct snapshot *s);
/* Tells on which build and which root layer each stands. */
void snapshots_each(
	struct box *b, void (*each)(void *arg, const char *build, const char *root), void *arg);
/* Into the tables, by time and id: that is what a cursor names. */
void snapshot_add(struct snapshot *s);
void snapshot_store(const struct snapshot *s, store_done_fn *done, void *arg);
/* A tag of a name is on one snapshot only: another one loses it, in the same transaction. */
void snapshot_take_tag(struct snapshot *s);
void snapshot_measure(struct snapshot *s, sandbox_done_fn *done, void *arg);

/* ---- snapshot_create.c ---- */

/* Whether such a one may be made. */
int snapshot_check(
	struct box *b, const char *tenant, const struct snapshot_spec *spec, struct error *e);

/* ---- volume.c ---- */

void volume_from_row(struct box *b, const struct volume_row *row);
void volume_free(struct volume *v);
/* NULL: there is none of this id. */
const char *volume_name_of(struct box *b, const char *id);
/* Fills `ret` with the volumes that a new sandbox asks for, checked. */
int volumes_settle(struct box *b, const struct sandbox_spec *spec,
	struct warden_volume ret[WARDEN_VOLUMES_MAX], struct error *e);
