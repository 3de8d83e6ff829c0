/*
 * Layers: what templates are made of. Each is a read-only disk of the keeper and a row: the root of
 * an image, or what a sandbox's disk begins with. Builds, sandboxes and snapshots refer to them by
 * id; a layer that is the result of a step has a key, too, by which the next build finds it again.
 *
 * A layer is made on disk first, then in the store, and it goes the other way round: what is on
 * disk without a row was never of use, and the next start removes it.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "box/sandbox/disk_name.h"
#include "box/sandbox/later.h"
#include "box/template/catalogue.h"

static struct layer *layer_new(struct catalogue *c, const char *id, const char *tenant)
{
	struct layer *l = mem_new(sizeof *l);
	memcpy(l->id, id, ID_SIZE);
	l->tenant = sandbox_copy_string(tenant);
	HASH_ADD(by_id, c->layers, id, ID_LEN, l);
	return l;
}

static void layer_free(struct catalogue *c, struct layer *l)
{
	HASH_DELETE(by_id, c->layers, l);
	free(l->tenant);
	free(l);
}

void layer_from_row(struct catalogue *c, const struct layer_row *row)
{
	if (!id_is_valid(row->id))
		return;
	struct layer *l = layer_new(c, row->id, row->tenant);
	memcpy(l->key, row->key, strnlen(row->key, LAYER_KEY_LEN));
	memcpy(l->root, row->root, strnlen(row->root, ID_LEN));
	l->bytes = row->bytes;
	l->created_ms = row->created_ms;
	l->used_ms = row->used_ms;
}

static void layer_store(struct catalogue *c, const struct layer *l, store_done_fn *done, void *arg)
{
	store_put_layer(c->box->store,
		&(struct layer_row){
			l->id, l->tenant, l->key, l->root, l->bytes, l->created_ms, l->used_ms},
		done, arg);
}

struct layer *layer_find(struct catalogue *c, const char *id)
{
	struct layer *l = NULL;
	HASH_FIND(by_id, c->layers, id, ID_LEN, l);
	return l;
}

struct layer *layer_cached(struct catalogue *c, const char *tenant, const char *key)
{
	for (struct layer *l = c->layers; l; l = l->by_id.next)
		if (!l->being_made && strcmp(l->key, key) == 0 && strcmp(l->tenant, tenant) == 0) {
			l->used_ms = clock_wall_ms();
			layer_store(c, l, NULL, NULL);
			return l;
		}
	return NULL;
}

/* ---- making ---- */

struct keeping {
	struct catalogue *catalogue;
	struct layer *layer;
	layer_kept_fn *kept;
	void *arg;
};

static void keeping_end(struct keeping *k, const struct error *e)
{
	struct box *b = k->catalogue->box;
	if (e && k->layer)
		layer_free(k->catalogue, take_ptr(k->layer));
	if (k->layer)
		k->layer->being_made = false;
	k->kept(k->arg, k->layer, e);
	free(k);
	box_check_closed(b);
}

static void layer_stored(void *arg, int error)
{
	struct keeping *k = arg;
	struct error e;
	if (error)
		store_error(&e, error, "the layer could not be stored");
	keeping_end(k, error ? &e : NULL);
}

static void layer_measured(void *arg, const struct keeper_reply *reply)
{
	struct keeping *k = arg;
	if (reply->error == 0)
		k->layer->bytes = reply->bytes;
	layer_store(k->catalogue, k->layer, layer_stored, k);
}

static void image_layer_disk_kept(void *arg, const struct keeper_reply *reply)
{
	struct keeping *k = arg;
	struct disk_name disk = disk_named(DISK_LAYER, k->layer->id);
	struct error e;
	if (reply->error) {
		error_set_errno(&e, reply->error, "the disk could not be kept");
		keeping_end(k, &e);
		return;
	}
	k->catalogue->box->driver->disk_measure(
		k->catalogue->box->driver, &disk, layer_measured, k);
}

void layer_keep(
	struct catalogue *c, struct sandbox *from, const char *key, layer_kept_fn *kept, void *arg)
{
	struct keeping *k = mem_new(sizeof *k);
	char id[ID_SIZE];
	id_generate(id);
	k->catalogue = c;
	k->kept = kept;
	k->arg = arg;
	k->layer = layer_new(c, id, from->tenant);
	k->layer->created_ms = k->layer->used_ms = clock_wall_ms();
	k->layer->being_made = true;
	memcpy(k->layer->key, key, strnlen(key, LAYER_KEY_LEN));
	memcpy(k->layer->root, from->root, ID_SIZE);
	struct disk_name disk = disk_named(DISK_LAYER, id), box = disk_of(from);
	c->box->driver->disk_keep(c->box->driver, &disk, &box, image_layer_disk_kept, k);
}

/* ---- the end ---- */

struct removal {
	struct box *box;
	char id[ID_SIZE];
};

static void layer_disk_gone(void *arg, const struct keeper_reply *reply)
{
	struct box *b = arg;
	if (reply->error)
		log_error("cannot remove a layer", "error", strerror(reply->error));
	box_check_closed(b);
}

static void row_gone(void *arg, int error)
{
	struct removal *r = arg;
	struct disk_name disk = disk_named(DISK_LAYER, r->id);
	if (error)
		log_error("a layer's row could not be deleted", "layer", r->id);
	else
		r->box->driver->disk_delete(r->box->driver, &disk, layer_disk_gone, r->box);
	box_check_closed(r->box);
	free(r);
}

void layer_remove(struct catalogue *c, struct layer *l)
{
	struct removal *r = mem_new(sizeof *r);
	r->box = c->box;
	memcpy(r->id, l->id, ID_SIZE);
	layer_free(c, l);
	store_delete_layer(c->box->store, r->id, row_gone, r);
}

void layers_close(struct catalogue *c)
{
	struct layer *l, *next;
	HASH_ITER (by_id, c->layers, l, next)
		layer_free(c, l);
}
