/*
 * GET /fs/download/{id}: a directory as a tar.gz; POST /fs/upload/{id}: one unpacked into a
 * directory. Both flow: neither the archive nor what is in it is ever held. Compression is done by
 * threads, a step at a time.
 *
 * Of the two formats that Agentuity has, tar.gz is what its own tools use; zip is refused.
 */
#include "dialect/agentuity/archives.h"

#include <stdlib.h>
#include <string.h>

#include "box/codec.h"

#define UPLOAD_MAX (UINT64_C(1) << 40)

static const char *const formats[] = {"tar.gz", "zip", NULL};

static int check_format(const struct http_request *req, struct error *e)
{
	int format;
	if (agentuity_query_word(req, "format", formats, &format, e) < 0)
		return -1;
	return format == 0 ? 0
			   : error_set_field(e, ERROR_NOT_IMPLEMENTED, "format",
				     "\"format\" can be \"tar.gz\" only");
}

static const char *query_path(const struct http_request *req)
{
	const char *path = http_query(req, "path");
	return path && path[0] ? path : ".";
}

/* ---- down ---- */

struct download {
	struct http_request *req;
	struct file_call *file; /* NULL: it has ended */
	struct codec *codec;
	bool streaming, codec_hungry;
};

static void download_free(struct download *d)
{
	if (d->file)
		file_cancel(d->file);
	codec_close(d->codec);
	free(d);
}

static void download_stopped(void *arg)
{
	download_free(arg);
}

/* Once it flows, all we can say is that this was not the end. */
static void download_fail(struct download *d, const struct error *e)
{
	struct http_request *req = d->req;
	bool streaming = d->streaming;
	download_free(d);
	if (streaming)
		http_stream_abort(req);
	else
		http_respond_error(req, e);
}

static void client_hungry(void *arg)
{
	codec_resume(((struct download *)arg)->codec);
}

static void pack_begins(void *arg, uint64_t length, uint64_t offset)
{
	struct download *d = arg;
	const struct http_generator generator = {client_hungry, download_stopped, d};
	(void)length;
	(void)offset;
	d->streaming = true;
	file_pause(d->file);
	codec_pause(d->codec);
	http_stream_begin(d->req, 200, "application/gzip", &generator);
	if (d->codec_hungry)
		file_resume(d->file);
}

static void pack_data(void *arg, struct buf *bytes)
{
	struct download *d = arg;
	file_pause(d->file);
	d->codec_hungry = false;
	codec_push(d->codec, bytes);
}

static void pack_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct download *d = arg;
	(void)result;
	d->file = NULL;
	if (e)
		download_fail(d, e);
	else if (d->codec_hungry)
		codec_finish(d->codec);
}

static void compress_wants(void *arg)
{
	struct download *d = arg;
	d->codec_hungry = true;
	if (d->file && d->streaming)
		file_resume(d->file);
	else if (!d->file)
		codec_finish(d->codec);
}

static void compress_data(void *arg, struct buf *bytes)
{
	struct download *d = arg;
	codec_pause(d->codec);
	http_stream_write(d->req, bytes);
}

static void compress_ended(void *arg, const struct error *e)
{
	struct download *d = arg;
	struct http_request *req = d->req;
	if (e) {
		download_fail(d, e);
		return;
	}
	download_free(d);
	http_stream_end(req);
}

static void handle_download(struct http_request *req)
{
	static const struct file_events file_events = {
		.content = pack_begins, .data = pack_data, .done = pack_done};
	static const struct codec_events codec_events = {
		compress_data, compress_wants, compress_ended};
	struct error e;
	struct sandbox *s = agentuity_sandbox_or_404(req);
	if (!s)
		return;
	const struct file_request request = {
		.fixed = {.op = FILE_PACK}, .text = {[FILE_PATH] = query_path(req)}};
	struct download *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	d->req = req;
	if (check_format(req, &e) < 0 ||
		file_begin(s, NULL, &request, &file_events, d, &d->file, &e) < 0) {
		free(d);
		http_respond_error(req, &e);
		return;
	}
	d->codec = codec_new(agentuity_of(req)->loop, CODEC_GZIP, &codec_events, d);
	http_on_abort(req, download_stopped, d);
}

/* ---- up ---- */

struct upload {
	struct http_request *req;
	void (*respond)(struct http_request *req);
	struct file_call *file; /* NULL: it has ended */
	struct codec *codec;    /* expands whatever comes; NULL: it has ended */
	struct buf waiting;     /* one piece of the body, until the codec is hungry */
	bool codec_hungry, complete, body_paused;
};

static void upload_free(struct upload *u)
{
	if (u->file)
		file_cancel(u->file);
	if (u->codec)
		codec_close(u->codec);
	buf_finish(&u->waiting);
	free(u);
}

static void upload_aborted(void *arg)
{
	upload_free(arg);
}

static void upload_fail(struct upload *u, const struct error *e)
{
	struct http_request *req = u->req;
	upload_free(u);
	http_respond_error(req, e);
}

/* The next piece for the codec, if both are there. */
static void feed(struct upload *u)
{
	if (!u->codec_hungry || (u->waiting.len == 0 && !u->complete))
		return;
	u->codec_hungry = false;
	if (u->waiting.len > 0)
		codec_push(u->codec, &u->waiting);
	else
		codec_finish(u->codec);
	if (u->body_paused) {
		u->body_paused = false;
		http_body_resume(u->req);
	}
}

static void expand_wants(void *arg)
{
	struct upload *u = arg;
	u->codec_hungry = true;
	feed(u);
}

static void expand_data(void *arg, struct buf *bytes)
{
	struct upload *u = arg;
	if (!u->file)
		return;
	file_put_data(u->file, bytes->data, bytes->len);
	if (file_room(u->file) == 0)
		codec_pause(u->codec);
}

static void expand_ended(void *arg, const struct error *e)
{
	struct upload *u = arg;
	if (e) {
		upload_fail(u, e);
		return;
	}
	codec_close(u->codec);
	u->codec = NULL;
	if (u->file)
		file_put_end(u->file);
}

static void unpack_room(void *arg)
{
	struct upload *u = arg;
	if (u->codec)
		codec_resume(u->codec);
}

static void unpack_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void unpack_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct upload *u = arg;
	struct http_request *req = u->req;
	void (*respond)(struct http_request *) = u->respond;
	(void)result;
	u->file = NULL;
	if (e) {
		upload_fail(u, e);
		return;
	}
	upload_free(u);
	respond(req);
}

static void body_data(void *arg, const char *bytes, size_t len)
{
	struct upload *u = arg;
	buf_append(&u->waiting, bytes, len);
	feed(u);
	if (u->waiting.len > 0) {
		u->body_paused = true;
		http_body_pause(u->req);
	}
}

static void body_end(void *arg)
{
	struct upload *u = arg;
	u->complete = true;
	http_on_abort(u->req, upload_aborted, u);
	feed(u);
}

void archive_unpack(struct http_request *req, struct sandbox *s, const char *path,
	void (*respond)(struct http_request *req))
{
	static const struct file_events file_events = {
		.entry = unpack_entry, .room = unpack_room, .done = unpack_done};
	static const struct codec_events codec_events = {expand_data, expand_wants, expand_ended};
	const struct file_request request = {
		.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS}, .text = {[FILE_PATH] = path}};
	struct error e;
	struct upload *u = calloc(1, sizeof *u);
	if (!u)
		abort();
	u->req = req;
	u->respond = respond;
	if (file_begin(s, NULL, &request, &file_events, u, &u->file, &e) < 0) {
		free(u);
		http_respond_error(req, &e);
		return;
	}
	u->codec = codec_new(agentuity_of(req)->loop, CODEC_EXPAND, &codec_events, u);
	http_body_stream(req, &(struct http_body_sink){body_data, body_end, upload_aborted, u});
}

static void handle_upload(struct http_request *req)
{
	struct error e;
	struct sandbox *s = agentuity_sandbox_or_404(req);
	if (s && check_format(req, &e) < 0)
		http_respond_error(req, &e);
	else if (s)
		archive_unpack(req, s, query_path(req), agentuity_respond_success);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/download/{id}", handle_download, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/upload/{id}", handle_upload, UPLOAD_MAX, .streams_body = true},
};

const struct agentuity_table agentuity_archive_table = AGENTUITY_TABLE(AGENTUITY_FILES, routes);
