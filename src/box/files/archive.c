#include "box/files/archive.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/files/expand.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"

struct archive {
	struct box *box;
	struct file_call *call; /* NULL once it is over */
	struct expand *expand;
	const struct archive_events *events;
	void *arg;
	bool failed; /* *failure is on its way to the owner */
	bool cancelled;
};

static void archive_free(struct archive *a)
{
	expand_close(a->expand);
	free(a);
}

static void files_archive_failure_told(void *arg, const struct error *e)
{
	struct archive *a = arg;
	if (!a->cancelled)
		a->events->done(a->arg, e);
	archive_free(a);
}

static void files_archive_fail(struct archive *a, const struct error *e)
{
	a->failed = true;
	expand_close(take_ptr(a->expand));
	file_cancel(take_ptr(a->call));
	box_answer_later(a->box, files_archive_failure_told, a, e);
}

static void files_archive_has_room(void *arg)
{
	struct archive *a = arg;
	a->events->room(a->arg);
}

static void files_archive_expanded(void *arg, const struct error *e)
{
	struct archive *a = arg;
	if (e) {
		files_archive_fail(a, e);
		return;
	}
	expand_close(take_ptr(a->expand));
	file_put_end(a->call);
}

static void files_archive_call_has_room(void *arg)
{
	struct archive *a = arg;
	if (a->expand)
		expand_call_has_room(a->expand);
}

static void files_archive_call_done(
	void *arg, const struct file_result *result, const struct error *e)
{
	struct archive *a = arg;
	(void)result;
	a->call = NULL;
	a->events->done(a->arg, e);
	archive_free(a);
}

struct archive *archive_begin(struct sandbox *s, const struct file_request *request,
	const struct image_blob *expected, const struct archive_events *events, void *arg,
	struct error *e)
{
	static const struct file_events file_events = {
		.room = files_archive_call_has_room, .done = files_archive_call_done};
	static const struct expand_events expand_events = {
		files_archive_has_room, files_archive_expanded};
	struct archive *a = mem_new(sizeof *a);
	*a = (struct archive){.box = s->box, .events = events, .arg = arg};
	if (file_begin(s, "root", request, &file_events, a, &a->call, e) < 0) {
		archive_free(a);
		return NULL;
	}
	a->expand = expand_new(s->box->loop, CODEC_EXPAND, a->call, &expand_events, a);
	if (expected)
		expand_expect(a->expand, expected);
	return a;
}

size_t archive_room(const struct archive *a)
{
	return a->expand ? expand_room(a->expand) : 0;
}

void archive_write(struct archive *a, const char *data, size_t len)
{
	if (a->expand)
		expand_write(a->expand, data, len);
}

void archive_end(struct archive *a)
{
	if (a->expand)
		expand_end(a->expand);
}

void archive_fail(struct archive *a, const struct error *e)
{
	if (!a->failed)
		files_archive_fail(a, e);
}

void archive_cancel(struct archive *a)
{
	if (a->failed) {
		a->cancelled = true;
		return;
	}
	file_cancel(a->call);
	archive_free(a);
}
