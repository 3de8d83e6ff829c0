/*
 * The space that disks take: measured by the keeper one after the other, and told as it is known.
 */
#include <string.h>

#include "base/buf.h"
#include "box/disk/checkpoint.h"
#include "box/core/measure.h"
#include "box/disk/snapshot.h"
#include "box/disk/volume.h"
#include "op/disks.h"
#include "op/op_core.h"

struct inventory_item {
	struct inventory_item *next;
	struct disk_usage disk;
};

struct inventory_op {
	struct op op;
	bool begun;
	bool idle_due;                        /* a disk was told, and OP_IDLE not yet */
	struct inventory_item *first, **last; /* not looked at yet; in the operation's memory */
};

/* ---- what there is ---- */

static const char *inventory_keep(struct inventory_op *i, const char *text, const char *tag)
{
	autobuf joined = {0};
	buf_append_str(&joined, text);
	if (tag[0] && text[0])
		buf_append_char(&joined, ':');
	buf_append_str(&joined, tag);
	char *copy = scratch_alloc(&i->op.memory, joined.len + 1);
	if (joined.len > 0)
		memcpy(copy, joined.data, joined.len);
	return copy;
}

static void inventory_add(struct inventory_op *i, const struct disk_usage *disk, const char *tag)
{
	struct inventory_item *item = scratch_alloc(&i->op.memory, sizeof *item);
	item->disk = (struct disk_usage){.kind = disk->kind,
		.id = inventory_keep(i, disk->id, ""),
		.name = inventory_keep(i, disk->name, tag),
		.sandbox = inventory_keep(i, disk->sandbox ? disk->sandbox : "", ""),
		.limit = disk->limit};
	*i->last = item;
	i->last = &item->next;
}

static void inventory_add_sandbox(struct inventory_op *i, struct sandbox *s)
{
	struct sandbox_view view;
	struct checkpoint_view checkpoint;
	sandbox_view(s, &view);
	inventory_add(i,
		&(struct disk_usage){.kind = DISK_BOX,
			.id = view.id,
			.name = view.name,
			.limit = view.resources.disk},
		"");
	for (struct checkpoint *c = checkpoint_first(s); c; c = checkpoint_next(c)) {
		checkpoint_view(c, &checkpoint);
		inventory_add(i,
			&(struct disk_usage){.kind = DISK_CHECKPOINT,
				.id = checkpoint.id,
				.name = checkpoint.name,
				.sandbox = view.id},
			"");
	}
}

static void inventory_add_all(struct inventory_op *i)
{
	struct box *b = i->op.ops->box;
	const char *tenant = i->op.tenant;
	struct snapshot_record snapshot;
	struct volume_view volume;
	for (struct sandbox *s = sandbox_first(b, tenant, -1, ""); s; s = sandbox_next(s))
		inventory_add_sandbox(i, s);
	for (struct snapshot *s = snapshot_first(b, tenant, -1, ""); s; s = snapshot_next(s)) {
		snapshot_view(s, &snapshot);
		inventory_add(i,
			&(struct disk_usage){
				.kind = DISK_SNAPSHOT, .id = snapshot.id, .name = snapshot.name},
			snapshot.tag);
	}
	for (struct volume *v = volume_first(b, tenant); v; v = volume_next(v)) {
		volume_view(v, &volume);
		inventory_add(i,
			&(struct disk_usage){.kind = DISK_VOLUME,
				.id = volume.id,
				.name = volume.name,
				.limit = volume.limit},
			"");
	}
}

/* ---- asking ---- */

static void inventory_go_on(struct inventory_op *i);

static void inventory_measured(void *arg, const struct disk_measured *m)
{
	struct inventory_op *i = arg;
	struct inventory_item *item = i->first;
	struct ops *ops = i->op.ops;
	if (!op_awaited(&i->op)) {
		ops->inventories--;
		return;
	}
	i->first = item->next;
	item->disk.bytes = m->bytes;
	item->disk.files = m->files;
	/* A disk that is gone or lost takes nothing. */
	if (m->error == 0) {
		i->idle_due = true;
		if (!op_emit(&i->op, &(struct op_event){.kind = OP_ROW, .disk = &item->disk}))
			return;
	}
	if (!i->op.paused)
		inventory_go_on(i);
}

/* Between two questions; the caller listens. */
static void inventory_go_on(struct inventory_op *i)
{
	struct op *op = &i->op;
	if (i->idle_due) {
		i->idle_due = false;
		if (!op_emit(op, &(struct op_event){.kind = OP_IDLE}) || op->paused)
			return;
	}
	if (!i->first) {
		op_done(op, &(struct op_event){.kind = OP_DONE});
		return;
	}
	op_await(op);
	disk_measure(op->ops->box, i->first->disk.kind, i->first->disk.id, inventory_measured, i);
}

static void inventory_begin(struct inventory_op *i)
{
	struct error e = {0};
	struct sandbox *only = i->op.sandbox ? op_sandbox(&i->op, &e) : NULL;
	if (i->op.sandbox && !only) {
		op_fail(&i->op, OP_NO_SANDBOX, &e);
		return;
	}
	if (i->op.ops->inventories == INVENTORIES_MAX) {
		error_set(&e, ERROR_RESOURCE_EXHAUSTED,
			"%d of these are under way already; try again later", INVENTORIES_MAX);
		op_fail(&i->op, OP_ERROR, &e);
		return;
	}
	i->begun = true;
	i->op.ops->inventories++;
	i->last = &i->first;
	if (only)
		inventory_add_sandbox(i, only);
	else
		inventory_add_all(i);
	inventory_go_on(i);
}

static void inventory_resume(struct op *op)
{
	struct inventory_op *i = (struct inventory_op *)op;
	if (i->begun)
		inventory_go_on(i);
	else
		inventory_begin(i);
}

/*
 * An inventory whose caller left counts until the keeper has answered it, so that clients that come
 * and go cannot start more than INVENTORIES_MAX.
 */
static void inventory_release(struct op *op, enum op_end end)
{
	(void)end;
	if (((struct inventory_op *)op)->begun && !op->awaits)
		op->ops->inventories--;
}

struct op *op_inventory(const struct op_call *call)
{
	static const struct op_type type = {
		"disks.list", .resume = inventory_resume, .release = inventory_release};
	struct sandbox *s;
	return op_new(call, &type, sizeof(struct inventory_op), &s);
}
