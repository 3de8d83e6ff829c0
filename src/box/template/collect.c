/*
 * Which layers go: those that no build, sandbox, snapshot or job refers to, unless they are cached
 * results of steps; and, at the start, disks without a row.
 */
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "box/sandbox/disk_name.h"
#include "box/sandbox/later.h"
#include "box/template/catalogue.h"

#define LAYERS_CACHED_PER_TENANT 200
#define LAYERS_CACHED_MS         (INT64_C(7) * 24 * 3600 * 1000)

static void layer_need(struct catalogue *c, const char *id)
{
	struct layer *l = id[0] ? layer_find(c, id) : NULL;
	if (l)
		l->needed = true;
}

static void snapshot_needs(void *arg, const char *build, const char *root)
{
	(void)build;
	layer_need(arg, root);
}

/* Marks the layers that builds, sandboxes and running jobs refer to. */
static void layers_mark_needed(struct catalogue *c)
{
	for (struct layer *l = c->layers; l; l = l->by_id.next)
		l->needed = l->being_made;
	for (const struct build *build = c->builds; build; build = build->by_id.next) {
		layer_need(c, build->root);
		layer_need(c, build->layer);
	}
	const struct sandbox *s;
	DL_FOREACH (c->box->sandboxes.order, s) {
		layer_need(c, s->root);
		layer_need(c, s->layer);
	}
	c->box->hooks->each_snapshot(c->box, snapshot_needs, c);
	build_jobs_need(c, layer_need);
}

static bool layer_is_worth_keeping(struct catalogue *c, const struct layer *l, int64_t now)
{
	struct layer *root = l->root[0] ? layer_find(c, l->root) : NULL;
	if (!l->key[0] || now - l->used_ms > LAYERS_CACHED_MS)
		return false;
	return !l->root[0] || (root && root->needed);
}

/* Keeps the most recently used of a tenant's cached layers. */
static bool layer_is_among_newest(struct catalogue *c, const struct layer *l)
{
	unsigned newer = 0;
	for (const struct layer *other = c->layers; other; other = other->by_id.next)
		newer += !other->needed && other->key[0] && other->used_ms > l->used_ms &&
			 strcmp(other->tenant, l->tenant) == 0;
	return newer < LAYERS_CACHED_PER_TENANT;
}

void layers_collect(struct catalogue *c)
{
	struct layer *l, *next;
	int64_t now = clock_wall_ms();
	if (c->box->closing || c->box->starting)
		return;
	builds_prune(c);
	layers_mark_needed(c);
	HASH_ITER (by_id, c->layers, l, next)
		if (!l->needed &&
			(!layer_is_worth_keeping(c, l, now) || !layer_is_among_newest(c, l)))
			layer_remove(c, l);
}

/* ---- start: what is on disk without a row ---- */

static void layer_listed(void *arg, const struct keeper_reply *reply)
{
	struct catalogue *c = arg;
	if (reply->error || !reply->id[0]) {
		layers_collect(c);
		return;
	}
	struct disk_name disk = disk_named(DISK_LAYER, reply->id);
	c->box->driver->disk_next(c->box->driver, &disk, layer_listed, c);
	if (!layer_find(c, reply->id))
		disks_set_aside(c->box, DISK_LAYER, reply->id, NULL, NULL);
}

void layers_reconcile(struct catalogue *c)
{
	struct disk_name first = {.kind = DISK_LAYER};
	c->box->driver->disk_next(c->box->driver, &first, layer_listed, c);
}
