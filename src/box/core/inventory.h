/*
 * What a tenant's disks take: those of its sandboxes, their checkpoints, its snapshots and volumes.
 * Each is looked at by the keeper, one after the other, and told as it is known. What two disks
 * share is counted in both.
 */
#pragma once

#include "box/sandbox/sandbox.h"

#define INVENTORIES_MAX 4 /* at once, of all tenants: others need the keeper, too */

struct inventory;

struct inventory_disk {
	enum disk_kind kind;
	const char *id;
	const char *name;    /* of a snapshot with its tag; "": none */
	const char *sandbox; /* of a checkpoint: whose it is; "" */
	int64_t bytes, files;
	int64_t limit; /* 0: none */
};

struct inventory_events {
	void (*disk)(void *arg, const struct inventory_disk *disk);
	/* Once, unless it was cancelled. */
	void (*done)(void *arg, const struct error *e);
};

/*
 * only: of that sandbox and its checkpoints; NULL: all there are. It begins paused. NULL with *e:
 * not now.
 */
struct inventory *inventory_begin(struct box *b, const char *tenant, struct sandbox *only,
	const struct inventory_events *events, void *arg, struct error *e);
/* Nothing is told until it is resumed. */
void inventory_pause(struct inventory *i);
void inventory_resume(struct inventory *i);
/* Nothing more is told. Not after `done`. */
void inventory_cancel(struct inventory *i);
