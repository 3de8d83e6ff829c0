#include "box/core/inventory.h"

#include <stdlib.h>
#include <string.h>

#include "base/scratch.h"
#include "box/disk/disks.h"
#include "box/sandbox/later.h"

struct item {
	struct item *next;
	struct inventory_disk disk;
};

struct inventory {
	struct box *box;
	struct scratch memory;
	struct item *first, **last; /* not looked at yet; in the scratch */
	bool asking, paused, cancelled;
	const struct inventory_events *events;
	void *arg;
};

static void inventory_free(struct inventory *i)
{
	struct box *b = i->box;
	scratch_finish(&i->memory);
	free(i);
	b->inventories--;
	box_check_closed(b);
}

/* ---- asking ---- */

static void go_on(struct inventory *i);

static void measured(void *arg, const struct keeper_reply *reply)
{
	struct inventory *i = arg;
	struct item *item = i->first;
	i->asking = false;
	if (i->cancelled) {
		inventory_free(i);
		return;
	}
	i->first = item->next;
	item->disk.bytes = reply->bytes;
	item->disk.files = reply->files;
	/* What is gone meanwhile, or was lost before, takes nothing. */
	if (reply->error == 0)
		i->events->disk(i->arg, &item->disk);
	go_on(i);
}

static void go_on(struct inventory *i)
{
	if (i->asking || i->paused)
		return;
	if (!i->first) {
		i->events->done(i->arg, NULL);
		inventory_free(i);
		return;
	}
	struct disk_name disk = disk_named(i->first->disk.kind, i->first->disk.id);
	i->asking = true;
	keeper_link_call(&i->box->keeper, KEEPER_MEASURE, &disk, NULL, 0, measured, i);
}

void inventory_pause(struct inventory *i)
{
	i->paused = true;
}

void inventory_resume(struct inventory *i)
{
	if (!i->paused)
		return;
	i->paused = false;
	go_on(i);
}

void inventory_cancel(struct inventory *i)
{
	i->cancelled = true;
	if (!i->asking)
		inventory_free(i);
}

/* ---- what there is ---- */

static const char *keep(struct inventory *i, const char *text, const char *tag)
{
	autobuf joined = {0};
	buf_append_str(&joined, text);
	if (tag[0] && text[0])
		buf_append_char(&joined, ':');
	buf_append_str(&joined, tag);
	char *copy = scratch_alloc(&i->memory, joined.len + 1);
	if (joined.len > 0)
		memcpy(copy, joined.data, joined.len);
	return copy;
}

static void add(struct inventory *i, enum disk_kind kind, const char *id, const char *name,
	const char *tag, const char *sandbox, int64_t limit)
{
	struct item *item = scratch_alloc(&i->memory, sizeof *item);
	item->disk = (struct inventory_disk){.kind = kind,
		.id = keep(i, id, ""),
		.name = keep(i, name, tag),
		.sandbox = keep(i, sandbox, ""),
		.limit = limit};
	*i->last = item;
	i->last = &item->next;
}

static void add_sandbox(struct inventory *i, struct sandbox *s)
{
	add(i, DISK_BOX, s->id, s->name, "", "", s->resources.disk);
	for (struct checkpoint *c = checkpoint_first(s); c; c = checkpoint_next(c))
		add(i, DISK_CHECKPOINT, c->id, c->name, "", s->id, 0);
}

static void add_all(struct inventory *i, const char *tenant)
{
	for (struct sandbox *s = sandbox_first(i->box, tenant, -1, ""); s; s = sandbox_next(s))
		add_sandbox(i, s);
	for (struct snapshot *s = snapshot_first(i->box, tenant, -1, ""); s; s = snapshot_next(s))
		add(i, DISK_SNAPSHOT, s->id, s->name, s->tag, "", 0);
	for (struct volume *v = volume_first(i->box, tenant); v; v = volume_next(v))
		add(i, DISK_VOLUME, v->id, v->name, "", "", v->limit);
}

struct inventory *inventory_begin(struct box *b, const char *tenant, struct sandbox *only,
	const struct inventory_events *events, void *arg, struct error *e)
{
	if (b->inventories >= INVENTORIES_MAX) {
		error_set(e, ERROR_RESOURCE_EXHAUSTED,
			"%d of these are under way already; try again later", INVENTORIES_MAX);
		return NULL;
	}
	struct inventory *i = calloc(1, sizeof *i);
	if (!i)
		abort();
	*i = (struct inventory){
		.box = b, .last = &i->first, .paused = true, .events = events, .arg = arg};
	b->inventories++;
	if (only)
		add_sandbox(i, only);
	else
		add_all(i, tenant);
	return i;
}
