/*
 * GET /fs/{id}?path=…: the bytes of a file, as fast as the client takes them. The answer is raw, so
 * its status tells what went wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/agentuity/routes.h"

struct reading {
	struct http_request *req;
	struct file_call *file; /* NULL: it has ended */
	bool streaming;
};

static void reading_free(struct reading *r)
{
	if (r->file)
		file_cancel(r->file);
	free(r);
}

static void stopped(void *arg)
{
	reading_free(arg);
}

static void proceed(void *arg)
{
	struct reading *r = arg;
	if (r->file)
		file_resume(r->file);
}

static void file_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void file_content(void *arg, uint64_t length, uint64_t offset)
{
	struct reading *r = arg;
	const struct http_generator generator = {proceed, stopped, r};
	static const char type[] = "application/octet-stream";
	(void)offset;
	r->streaming = true;
	file_pause(r->file);
	http_add_header(r->req, "X-Content-Type-Options", "nosniff");
	if (length == RECORD_UNKNOWN)
		http_stream_begin(r->req, 200, type, &generator);
	else
		http_stream_begin_sized(r->req, 200, type, length, &generator);
}

static void file_data(void *arg, struct buf *bytes)
{
	struct reading *r = arg;
	file_pause(r->file);
	http_stream_write(r->req, bytes);
}

static void file_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct reading *r = arg;
	struct http_request *req = r->req;
	bool streaming = r->streaming;
	(void)result;
	r->file = NULL;
	reading_free(r);
	if (!streaming)
		http_respond_error(req, e);
	else if (e)
		http_stream_abort(req);
	else
		http_stream_end(req);
}

static void handle_read(struct http_request *req)
{
	static const struct file_events events = {
		.entry = file_entry, .content = file_content, .data = file_data, .done = file_done};
	struct error e;
	const char *path = http_query(req, "path");
	struct sandbox *s = agentuity_sandbox_or_404(req);
	if (!s)
		return;
	const struct file_request request = {
		.fixed = {.op = FILE_READ, .flags = FILE_FOLLOW, .length = RECORD_UNKNOWN},
		.text = {[FILE_PATH] = path}};
	if (!path || !path[0]) {
		error_set_field(&e, ERROR_MISSING_FIELD, "path", "\"path\" is missing");
		http_respond_error(req, &e);
		return;
	}
	struct reading *r = calloc(1, sizeof *r);
	if (!r)
		abort();
	r->req = req;
	if (file_begin(s, NULL, &request, &events, r, &r->file, &e) < 0) {
		free(r);
		http_respond_error(req, &e);
		return;
	}
	http_on_abort(req, stopped, r);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/{id}", handle_read, AGENTUITY_BODY_LIMIT},
};

const struct agentuity_table agentuity_content_table = AGENTUITY_TABLE(AGENTUITY_FILES, routes);
