/* Snapshots in memory: their list and their rows, how they are found, tagged, measured, deleted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/mem.h"
#include "box/disk/disks.h"
#include "box/sandbox/later.h"
#include "model/template.h"

/* ---- memory and tables ---- */

static bool disk_snapshot_is_after(const struct snapshot *s, int64_t ms, const char *id)
{
	return s->created_ms > ms || (s->created_ms == ms && strcmp(s->id, id) > 0);
}

struct snapshot *snapshot_new(struct box *b, const char *id)
{
	struct snapshot *s = mem_new(sizeof *s);
	s->box = b;
	s->bytes = s->files = -1;
	memcpy(s->id, id, ID_SIZE);
	return s;
}

void snapshot_add(struct snapshot *s)
{
	struct box *b = s->box;
	struct snapshot *last = b->disks.snapshot_order ? b->disks.snapshot_order->prev : NULL;
	if (last && !disk_snapshot_is_after(s, last->created_ms, last->id))
		s->created_ms = last->created_ms + 1;
	HASH_ADD(by_id, b->disks.snapshots, id, ID_LEN, s);
	DL_APPEND(b->disks.snapshot_order, s); // NOLINT: the last one's next is never NULL's
	s->listed = true;
}

void snapshot_free(struct snapshot *s)
{
	if (s->listed) {
		HASH_DELETE(by_id, s->box->disks.snapshots, s);
		DL_DELETE(s->box->disks.snapshot_order, s);
	}
	fields_free(&snapshot_model, &s->record);
	free(s);
}

void snapshot_from_row(struct box *b, const struct snapshot_record *row)
{
	struct snapshot *s = snapshot_new(b, row->id);
	fields_copy(&snapshot_model, 0, sizeof *row, &s->record, row);
	snapshot_add(s);
}

void snapshots_each(
	struct box *b, void (*each)(void *arg, const char *build, const char *root), void *arg)
{
	for (const struct snapshot *s = b->disks.snapshots; s; s = s->by_id.next)
		each(arg, s->build, s->root);
}

void snapshot_store(const struct snapshot *s, store_done_fn *done, void *arg)
{
	store_put_snapshot(s->box->store, &s->record, done, arg);
}

void snapshot_view(const struct snapshot *s, struct snapshot_record *out)
{
	*out = s->record;
	out->status = s->deleted ? DISK_DELETED : s->found ? DISK_READY : DISK_LOST;
}

/* ---- finding ---- */

static struct snapshot *disk_snapshot_visible_from(struct snapshot *s, const char *tenant)
{
	while (s && (s->deleted || strcmp(s->tenant, tenant) != 0))
		s = s->next;
	return s;
}

struct snapshot *snapshot_first(
	struct box *b, const char *tenant, int64_t after_ms, const char *after_id)
{
	struct snapshot *s = b->disks.snapshot_order;
	while (s && !disk_snapshot_is_after(s, after_ms, after_id))
		s = s->next;
	return disk_snapshot_visible_from(s, tenant);
}

struct snapshot *snapshot_next(const struct snapshot *s)
{
	return disk_snapshot_visible_from(s->next, s->tenant);
}

struct snapshot *snapshot_find_any(struct box *b, const char *id)
{
	struct snapshot *s = NULL;
	if (id_is_valid(id))
		HASH_FIND(by_id, b->disks.snapshots, id, ID_LEN, s);
	return s;
}

struct snapshot *snapshot_parent(const struct snapshot *s)
{
	return snapshot_find_any(s->box, s->parent);
}

static struct snapshot *with_tag(
	struct box *b, const char *tenant, const char *name, size_t name_len, const char *tag)
{
	struct snapshot *s = snapshot_first(b, tenant, -1, "");
	for (; s; s = snapshot_next(s))
		if (strlen(s->name) == name_len && memcmp(s->name, name, name_len) == 0 &&
			strcmp(s->tag, tag) == 0)
			return s;
	return NULL;
}

/* "latest", or the newest of that name; else the one whose tag it is. */
static struct snapshot *with_name_or_tag(struct box *b, const char *tenant, const char *word)
{
	struct snapshot *found = with_tag(b, tenant, word, strlen(word), TEMPLATE_LATEST), *s,
			*tagged = NULL;
	unsigned tags = 0;
	if (found)
		return found;
	for (s = snapshot_first(b, tenant, -1, ""); s; s = snapshot_next(s)) {
		if (strcmp(s->name, word) == 0)
			found = s;
		if (strcmp(s->tag, word) == 0) {
			tagged = s;
			tags++;
		}
	}
	return found ? found : tags == 1 ? tagged : NULL;
}

struct snapshot *snapshot_find(struct box *b, const char *tenant, const char *ref)
{
	const char *colon = strrchr(ref, ':');
	if (!ref[0])
		return NULL;
	struct snapshot *s = snapshot_find_any(b, ref);
	if (s && (s->deleted || strcmp(s->tenant, tenant) != 0))
		s = NULL;
	if (!s && colon)
		s = with_tag(b, tenant, ref, (size_t)(colon - ref), colon + 1);
	return s ? s : with_name_or_tag(b, tenant, ref);
}

/* ---- counting what is in it ---- */

struct measuring {
	struct box *box;
	char id[ID_SIZE];
	sandbox_done_fn *done; /* may be NULL */
	void *arg;
};

static void snapshot_measured(void *arg, const struct keeper_reply *reply)
{
	struct measuring *m = arg;
	struct snapshot *s = NULL;
	HASH_FIND(by_id, m->box->disks.snapshots, m->id, ID_LEN, s);
	if (s && !s->deleted && reply->error == 0) {
		s->bytes = reply->bytes;
		s->files = reply->files;
		snapshot_store(s, NULL, NULL);
	}
	if (m->done)
		m->done(m->arg, NULL);
	box_check_closed(m->box);
	free(m);
}

void snapshot_measure(struct snapshot *s, sandbox_done_fn *done, void *arg)
{
	struct measuring *m = mem_new(sizeof *m);
	*m = (struct measuring){.box = s->box, .done = done, .arg = arg};
	memcpy(m->id, s->id, ID_SIZE);
	struct disk_name disk = disk_named(DISK_SNAPSHOT, s->id);
	s->box->driver->disk_measure(s->box->driver, &disk, snapshot_measured, m);
}

/* ---- tags ---- */

void snapshot_take_tag(struct snapshot *s)
{
	struct snapshot *other = with_tag(s->box, s->tenant, s->name, strlen(s->name), s->tag);
	if (!s->tag[0] || !s->name[0] || !other || other == s)
		return;
	sandbox_set_text(&other->tag, "");
	snapshot_store(other, NULL, NULL);
}

struct change {
	struct snapshot *snapshot;
	sandbox_done_fn *done;
	void *arg;
};

static struct change *disk_snapshot_change_new(struct snapshot *s, sandbox_done_fn *done, void *arg)
{
	struct change *c = mem_new(sizeof *c);
	*c = (struct change){s, done, arg};
	return c;
}

static void disk_snapshot_change_stored(void *arg, int error)
{
	struct change *c = arg;
	struct error e;
	if (error)
		store_error(&e, error, "the change could not be stored");
	c->done(c->arg, error ? &e : NULL);
	free(c);
}

int snapshot_retag(
	struct snapshot *s, const char *tag, sandbox_done_fn *done, void *arg, struct error *e)
{
	if (tag && template_check_tag(tag, "tag", e) < 0)
		return -1;
	sandbox_set_text(&s->tag, "");
	if (tag) {
		struct snapshot *other = with_tag(s->box, s->tenant, s->name, strlen(s->name), tag);
		if (other && s->name[0]) {
			sandbox_set_text(&other->tag, "");
			snapshot_store(other, NULL, NULL);
		}
		sandbox_set_text(&s->tag, tag);
	}
	snapshot_store(s, disk_snapshot_change_stored, disk_snapshot_change_new(s, done, arg));
	return 0;
}

/* ---- delete ---- */

static bool has_children(const struct snapshot *s)
{
	const struct snapshot *other;
	DL_FOREACH (s->box->disks.snapshot_order, other)
		if (strcmp(other->parent, s->id) == 0)
			return true;
	return false;
}

/* Links of the lineage that nothing leads to any more go, too. */
static void disk_snapshot_forget(struct snapshot *s)
{
	while (s && s->deleted && !has_children(s)) {
		struct snapshot *parent = snapshot_parent(s);
		store_delete_snapshot(s->box->store, s->id, NULL, NULL);
		snapshot_free(s);
		s = parent;
	}
}

static void disk_snapshot_delete_stored(void *arg, int error)
{
	struct change *c = arg;
	struct snapshot *s = c->snapshot;
	struct error e;
	if (error) {
		s->deleted = false;
		store_error(&e, error, "the snapshot could not be deleted");
	} else {
		disks_forget(s->box, DISK_SNAPSHOT, s->id);
		disk_snapshot_forget(s);
	}
	c->done(c->arg, error ? &e : NULL);
	free(c);
}

int snapshot_delete(struct snapshot *s, sandbox_done_fn *done, void *arg, struct error *e)
{
	const struct sandbox *sandbox;
	DL_FOREACH (s->box->sandboxes.order, sandbox)
		if (strcmp(sandbox->snapshot, s->id) == 0 && !sandbox->ending.doomed)
			return error_set(e, ERROR_IN_USE,
				"the sandbox %s stands on this snapshot; delete it first",
				sandbox->id);
	s->deleted = true;
	snapshot_store(s, disk_snapshot_delete_stored, disk_snapshot_change_new(s, done, arg));
	return 0;
}
