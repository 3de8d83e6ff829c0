/*
 * PUT /volumecontent/{volume}/file: the body becomes a file. Bytes go on as they are taken inside;
 * nothing is kept here but a window.
 */
#include <stdlib.h>

#include "dialect/e2b/volumes.h"

#define FILE_MODE 0644

struct writing {
	struct http_request *req;
	struct file_call *file; /* NULL once it is done */
	char *path;
	bool paused;
	struct buf body;
	struct json_writer json;
	struct entry_writer entry;
};

static void writing_free(struct writing *w)
{
	if (w->file)
		file_cancel(w->file);
	buf_finish(&w->body);
	free(w->path);
	free(w);
}

static void writing_aborted(void *arg)
{
	writing_free(arg);
}

/* ---- the body ---- */

static void body_data(void *arg, const char *data, size_t len)
{
	struct writing *w = arg;
	file_put_data(w->file, data, len);
	if (file_room(w->file) > 0)
		return;
	w->paused = true;
	http_body_pause(w->req);
}

static void room_again(void *arg)
{
	struct writing *w = arg;
	if (!w->paused)
		return;
	w->paused = false;
	http_body_resume(w->req);
}

static void body_end(void *arg)
{
	struct writing *w = arg;
	file_put_done(w->file);
	file_put_end(w->file);
}

/* ---- what the core tells ---- */

static void file_written(void *arg, const struct file_entry *entry)
{
	entry_begin_in_volume(&((struct writing *)arg)->entry, entry);
}

static void write_ended(void *arg, const struct file_result *result, const struct error *why)
{
	struct writing *w = arg;
	struct http_request *req = w->req;
	struct error e;
	(void)result;
	w->file = NULL;
	if (why) {
		e2b_volume_explain(w->path, why, &e);
		writing_free(w);
		http_respond_error(req, &e);
		return;
	}
	entry_end(&w->entry);
	struct buf body = w->body;
	w->body = (struct buf){0};
	writing_free(w);
	e2b_respond_json(req, 201, &body);
}

static const struct file_events write_events = {
	.entry = file_written, .room = room_again, .done = write_ended};

/* ---- the request ---- */

static int begin_call(struct writing *w, struct volume *v, const char *path, struct error *e)
{
	struct volume_make make;
	struct file_request request = {.fixed = {.op = FILE_WRITE, .limit = UINT64_MAX}};
	if (!http_has_type(w->req, "application/octet-stream"))
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"a file comes as application/octet-stream");
	request.text[FILE_CWD] = "/";
	request.text[FILE_PATH] = path;
	if (e2b_volume_make(w->req, FILE_MODE, &make, e) < 0 ||
		volume_file_begin(v, &request, &write_events, w, &w->file, e) < 0)
		return -1;
	file_put_target(w->file,
		&(struct file_target){.path = path,
			.flags = FILE_HAS_MODE | (make.force ? FILE_PARENTS : FILE_EXCLUSIVE),
			.mode = make.mode,
			.owner = make.owner});
	return 0;
}

static int begin_write(
	struct http_request *req, struct volume *v, const char *path, struct error *e)
{
	struct writing *w = calloc(1, sizeof *w);
	const struct http_body_sink sink = {body_data, body_end, writing_aborted, w};
	if (!w)
		abort();
	w->req = req;
	w->path = e2b_copy(path);
	w->json.out = &w->body;
	w->entry.json = &w->json;
	if (begin_call(w, v, path, e) < 0) {
		writing_free(w);
		return -1;
	}
	http_on_abort(req, writing_aborted, w);
	http_body_stream(req, &sink);
	return 0;
}

static void handle_write(struct http_request *req)
{
	e2b_volume_serve(req, begin_write);
}

static const struct http_route routes[] = {
	{HTTP_PUT, "/volumecontent/{volume}/file", handle_write, UINT64_MAX, true},
};

const struct e2b_table e2b_volume_write_table = E2B_TABLE(routes);
