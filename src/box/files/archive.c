#include "box/files/archive.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/sandbox/later.h"
#include "box/sandbox/object.h"
#include "image/digest.h"
#include "image/inflate.h"

#define CHUNK (256u * 1024)

struct archive {
	struct box *box;
	struct file_call *call; /* NULL once it is over */
	const struct image_blob *expected;
	const struct archive_events *events;
	void *arg;
	struct inflate *inflate;
	struct digest_check stored, plain;
	struct buf input; /* not looked at yet */
	bool ended;       /* the owner has no more */
	bool failed;      /* *failure is on its way to the owner */
	bool cancelled;
};

static void archive_free(struct archive *a)
{
	inflate_free(a->inflate);
	buf_finish(&a->input);
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
	file_cancel(take_ptr(a->call));
	box_answer_later(a->box, files_archive_failure_told, a, e);
}

static int check_digests(struct archive *a, struct error *e)
{
	if (inflate_end(a->inflate, e) < 0)
		return -1;
	if (!a->expected)
		return 0;
	if (digest_end(&a->stored, &a->expected->digest, a->expected->size, a->expected->path, e) <
		0)
		return -1;
	return digest_end(&a->plain, &a->expected->plain, -1, a->expected->path, e);
}

/* As much as init can take. */
static void files_archive_pump(struct archive *a)
{
	struct error e;
	size_t room;
	while (!a->failed && a->call && (room = file_room(a->call)) > 0) {
		autobuf plain = {0};
		const char *data = a->input.data;
		size_t left = a->input.len;
		if (inflate_step(a->inflate, &data, &left, room < CHUNK ? room : CHUNK, &plain,
			    &e) < 0) {
			files_archive_fail(a, &e);
			return;
		}
		buf_consume(&a->input, a->input.len - left);
		if (plain.len > 0) {
			digest_add(&a->plain, plain.data, plain.len);
			file_put_data(a->call, plain.data, plain.len);
		} else if (a->input.len == 0) {
			break;
		}
	}
	if (a->failed || !a->ended || a->input.len > 0 || !a->call || file_room(a->call) == 0)
		return;
	a->ended = false; /* said once */
	if (check_digests(a, &e) < 0)
		files_archive_fail(a, &e);
	else
		file_put_end(a->call);
}

static void files_archive_call_has_room(void *arg)
{
	struct archive *a = arg;
	files_archive_pump(a);
	if (!a->failed && archive_room(a) > 0)
		a->events->room(a->arg);
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
	struct archive *a = mem_new(sizeof *a);
	*a = (struct archive){.box = s->box, .expected = expected, .events = events, .arg = arg};
	a->inflate = inflate_new();
	digest_begin(&a->stored);
	digest_begin(&a->plain);
	if (file_begin(s, "root", request, &file_events, a, &a->call, e) < 0) {
		archive_free(a);
		return NULL;
	}
	return a;
}

size_t archive_room(const struct archive *a)
{
	return a->failed || !a->call || a->input.len >= CHUNK ? 0 : CHUNK - a->input.len;
}

void archive_write(struct archive *a, const char *data, size_t len)
{
	if (a->failed)
		return;
	digest_add(&a->stored, data, len);
	buf_append(&a->input, data, len);
	files_archive_pump(a);
}

void archive_end(struct archive *a)
{
	a->ended = true;
	files_archive_pump(a);
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
