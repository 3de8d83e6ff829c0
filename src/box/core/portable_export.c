/* Two walks over the disk: what was deleted, and then everything that is there. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "box/core/portable.h"
#include "box/disk/disks.h"
#include "image/portable.h"

struct portable_export {
	struct box *box;
	char id[ID_SIZE];
	bool snapshot; /* it is one; else a sandbox */
	struct comparison *comparison;
	struct portable_writer *writer;
	struct buf out;
	const struct bundle_export_events *events;
	void *arg;
};

static void export_free(struct portable_export *x)
{
	portable_writer_free(x->writer);
	buf_finish(&x->out);
	free(x);
}

static void tell(struct portable_export *x)
{
	if (x->out.len > 0)
		x->events->data(x->arg, x->out.data, x->out.len);
	x->out.len = 0;
}

static void end(struct portable_export *x, const struct error *e)
{
	x->events->done(x->arg, e);
	export_free(x);
}

/* ---- what is there ---- */

static void take_data(void *arg, const char *bytes, size_t len)
{
	struct portable_export *x = arg;
	struct error e;
	if (portable_write(x->writer, bytes, len, &e) == 0) {
		tell(x);
		return;
	}
	comparison_cancel(x->comparison);
	end(x, &e);
}

static void written(void *arg, bool truncated, const struct error *e)
{
	struct portable_export *x = arg;
	struct error bad;
	if (!e && truncated)
		error_set(&bad, ERROR_NOT_SUPPORTED, "some of the directories are too deep");
	if (!e && (truncated || portable_write_end(x->writer, &bad) < 0))
		e = &bad;
	if (!e)
		tell(x);
	end(x, e);
}

/* ---- what is not ---- */

static int begin_walk(struct portable_export *x, enum diff_form form,
	const struct comparison_events *events, struct error *e)
{
	struct sandbox *s = x->snapshot ? NULL : sandbox_find_any(x->box, x->id);
	struct snapshot *snapshot = NULL;
	if (x->snapshot)
		HASH_FIND(by_id, x->box->snapshots, x->id, ID_LEN, snapshot);
	if (!s && (!snapshot || snapshot->deleted))
		return error_set(e, ERROR_NOT_FOUND, "it was deleted meanwhile");
	x->comparison = s ? comparison_begin_whole(s, form, events, x, e)
			  : comparison_begin_snapshot(snapshot, form, events, x, e);
	return x->comparison ? 0 : -1;
}

static void take_change(void *arg, const struct comparison_change *c)
{
	struct portable_export *x = arg;
	bool replaced = c->kind == DIFF_CHANGED && (c->old_mode & S_IFMT) != (c->new_mode & S_IFMT);
	if (c->kind != DIFF_DELETED && !replaced)
		return;
	portable_write_deleted(x->writer, c->path);
	tell(x);
}

static void looked(void *arg, bool truncated, const struct error *e)
{
	static const struct comparison_events events = {.data = take_data, .done = written};
	struct portable_export *x = arg;
	struct error bad;
	(void)truncated; /* so will be the next, which says so */
	if (!e && begin_walk(x, DIFF_TAR, &events, &bad) < 0)
		e = &bad;
	if (e)
		end(x, e);
}

static struct portable_export *begin(struct box *b, const char *id, bool snapshot,
	const struct portable_head *head, const struct bundle_export_events *events, void *arg,
	struct error *e)
{
	static const struct comparison_events look = {.change = take_change, .done = looked};
	struct portable_export *x = calloc(1, sizeof *x);
	if (!x)
		abort();
	x->box = b;
	memcpy(x->id, id, ID_SIZE);
	x->snapshot = snapshot;
	x->events = events;
	x->arg = arg;
	x->writer = portable_writer_new(head, &x->out);
	if (begin_walk(x, DIFF_RECORDS, &look, e) == 0)
		return x;
	export_free(x);
	return NULL;
}

struct portable_export *portable_export_sandbox(struct sandbox *s, const char *root,
	const struct bundle_export_events *events, void *arg, struct error *e)
{
	struct sandbox_view view;
	sandbox_view(s, &view);
	const struct portable_head head = {
		view.template_name, root, view.env.data, view.env.len, clock_wall_ms()};
	return begin(s->box, s->id, false, &head, events, arg, e);
}

struct portable_export *portable_export_snapshot(const struct snapshot *s,
	const struct bundle_export_events *events, void *arg, struct error *e)
{
	const struct portable_head head = {s->template_name, "/", "", 0, s->created_ms};
	return begin(s->box, s->id, true, &head, events, arg, e);
}

void portable_export_pause(struct portable_export *x)
{
	comparison_pause(x->comparison);
}

void portable_export_resume(struct portable_export *x)
{
	comparison_resume(x->comparison);
}

void portable_export_cancel(struct portable_export *x)
{
	comparison_cancel(x->comparison);
	export_free(x);
}
