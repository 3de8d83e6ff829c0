/* A directory's entries as the answer to a request. */
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/files.h"

#define HIGH_WATER (128u * 1024)

struct listing {
	struct http_request *req;
	struct file_call *file; /* NULL once it is done */
	char *path;
	struct buf out; /* found, not sent */
	struct json_writer json;
	struct entry_writer entry;
	const struct listing_form *form;
	bool streaming, hungry, paused;
	bool broken; /* it cannot be told to the end */
};

static void list_free(struct listing *call)
{
	buf_finish(&call->out);
	free(call->path);
	free(call);
}

static void list_aborted(void *arg)
{
	struct listing *call = arg;
	if (call->file)
		file_cancel(call->file);
	list_free(call);
}

/* ---- the answer ---- */

static void list_pump(struct listing *call)
{
	struct http_request *req = call->req;
	bool last = !call->file;
	if (!call->hungry || (call->out.len == 0 && !last))
		return;
	if (call->broken) {
		list_free(call);
		http_stream_abort(req);
		return;
	}
	struct buf out = call->out;
	call->out = (struct buf){0};
	call->hungry = false;
	if (last)
		list_free(call);
	http_stream_write(req, &out);
	if (last) {
		http_stream_end(req);
	} else if (call->paused) {
		call->paused = false;
		file_resume(call->file);
	}
}

static void list_proceed(void *arg)
{
	struct listing *call = arg;
	call->hungry = true;
	list_pump(call);
}

static void list_begin_stream(struct listing *call)
{
	const struct http_generator generator = {list_proceed, list_aborted, call};
	call->streaming = true;
	http_stream_begin(call->req, 200, "application/json", &generator);
}

/* ---- what is found ---- */

static void list_entry(void *arg, const struct file_entry *entry)
{
	struct listing *call = arg;
	call->form->entry(&call->entry, entry);
	if (call->out.len < HIGH_WATER)
		return;
	if (!call->streaming)
		list_begin_stream(call);
	if (!call->hungry && !call->paused) {
		call->paused = true;
		file_pause(call->file);
	}
	list_pump(call);
}

static void list_attribute(void *arg, const struct file_attribute *attribute)
{
	entry_attribute(&((struct listing *)arg)->entry, attribute);
}

static void list_fail(struct listing *call, const struct error *why)
{
	struct error e;
	struct http_request *req = call->req;
	call->form->explain(call->path, why, &e);
	list_free(call);
	http_respond_error(req, &e);
}

static void list_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct listing *call = arg;
	(void)result;
	call->file = NULL;
	if (e && !call->streaming) {
		list_fail(call, e);
		return;
	}
	call->broken = e != NULL;
	entry_end(&call->entry);
	call->form->end(&call->json);
	if (call->streaming) {
		list_pump(call);
		return;
	}
	struct http_request *req = call->req;
	struct buf out = call->out;
	call->out = (struct buf){0};
	list_free(call);
	http_respond(req, 200, "application/json", &out);
}

static const struct file_events list_events = {
	.entry = list_entry, .attribute = list_attribute, .done = list_done};

int listing_begin(struct http_request *req, const struct files_place *at, const char *given,
	const struct file_request *request, const struct listing_form *form, struct error *e)
{
	struct listing *call = calloc(1, sizeof *call);
	if (!call || !(call->path = strdup(given)))
		abort();
	call->req = req;
	call->form = form;
	call->json.out = &call->out;
	call->entry.json = &call->json;
	form->begin(&call->json);
	int r = files_begin_at(at, request, &list_events, call, &call->file, e);
	if (r < 0)
		list_free(call);
	else
		http_on_abort(req, list_aborted, call);
	return r;
}
