#include <stdlib.h>

#include "box/core/bundle.h"
#include "box/disk/disks.h"
#include "image/bundle.h"

struct bundle_export {
	struct comparison *comparison; /* NULL: it is over */
	struct bundle_sum sum;
	bool begun;
	struct buf manifest;
	const struct bundle_export_events *events;
	void *arg;
};

static void tell(struct bundle_export *x, const char *bytes, size_t len)
{
	bundle_sum_add(&x->sum, bytes, len);
	x->events->data(x->arg, bytes, len);
}

static void tell_manifest(struct bundle_export *x)
{
	if (x->begun)
		return;
	x->begun = true;
	tell(x, x->manifest.data, x->manifest.len);
}

static void take_data(void *arg, const char *bytes, size_t len)
{
	struct bundle_export *x = arg;
	tell_manifest(x);
	tell(x, bytes, len);
}

static void export_free(struct bundle_export *x)
{
	buf_finish(&x->manifest);
	free(x);
}

static void done(void *arg, bool truncated, const struct error *e)
{
	struct bundle_export *x = arg;
	struct error cut;
	x->comparison = NULL;
	if (!e && truncated) {
		error_set(&cut, ERROR_INTERNAL, "the snapshot's directories are too deep");
		e = &cut;
	}
	if (!e) {
		autobuf end = {0};
		tell_manifest(x);
		bundle_append_end(&end, &x->sum);
		x->events->data(x->arg, end.data, end.len);
	}
	x->events->done(x->arg, e);
	export_free(x);
}

int bundle_export_begin(const struct snapshot *s, const struct bundle_export_events *events,
	void *arg, struct bundle_export **ret, struct error *e)
{
	static const struct comparison_events comparison_events = {.data = take_data, .done = done};
	if (!s->found)
		return error_set(e, ERROR_INTERNAL, "the disk of this snapshot is gone");
	struct bundle_export *x = calloc(1, sizeof *x);
	if (!x)
		abort();
	x->events = events;
	x->arg = arg;
	bundle_sum_begin(&x->sum);
	bundle_append_manifest(
		&x->manifest, &(struct bundle_manifest){s->id, s->name, s->tag, s->description,
				      s->template_name, s->created_ms, s->bytes, s->files,
				      s->env.data, s->env.len, NULL, s->metadata});
	x->comparison = comparison_begin_snapshot(s, DIFF_ARCHIVE, &comparison_events, x, e);
	if (!x->comparison) {
		export_free(x);
		return -1;
	}
	*ret = x;
	return 0;
}

void bundle_export_pause(struct bundle_export *x)
{
	if (x->comparison)
		comparison_pause(x->comparison);
}

void bundle_export_resume(struct bundle_export *x)
{
	if (x->comparison)
		comparison_resume(x->comparison);
}

void bundle_export_cancel(struct bundle_export *x)
{
	if (x->comparison)
		comparison_cancel(x->comparison);
	export_free(x);
}
