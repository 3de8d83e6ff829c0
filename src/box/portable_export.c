#include <stdlib.h>

#include "base/clock.h"
#include "box/disks.h"
#include "box/portable.h"
#include "image/portable.h"

struct portable_export {
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

static void done(void *arg, bool truncated, const struct error *e)
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

static const struct comparison_events comparison_events = {.data = take_data, .done = done};

static struct portable_export *export_new(
	const struct portable_head *head, const struct bundle_export_events *events, void *arg)
{
	struct portable_export *x = calloc(1, sizeof *x);
	if (!x)
		abort();
	x->events = events;
	x->arg = arg;
	x->writer = portable_writer_new(head, &x->out);
	return x;
}

static struct portable_export *begun(struct portable_export *x, struct comparison *c)
{
	x->comparison = c;
	if (c)
		return x;
	export_free(x);
	return NULL;
}

struct portable_export *portable_export_sandbox(struct sandbox *s, const char *root,
	const struct buf *env, const struct bundle_export_events *events, void *arg,
	struct error *e)
{
	const struct portable_head head = {
		s->template_name, root, env->data, env->len, clock_wall_ms()};
	struct portable_export *x = export_new(&head, events, arg);
	return begun(x, comparison_begin_whole(s, DIFF_TAR, &comparison_events, x, e));
}

struct portable_export *portable_export_snapshot(const struct snapshot *s,
	const struct bundle_export_events *events, void *arg, struct error *e)
{
	const struct portable_head head = {s->template_name, "/", "{}", 2, s->created_ms};
	struct portable_export *x = export_new(&head, events, arg);
	return begun(x, comparison_begin_snapshot(s, DIFF_TAR, &comparison_events, x, e));
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
