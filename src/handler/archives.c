#include "handler/archives.h"

#include <stdlib.h>

/* ---- down ---- */

struct download {
	struct http_request *req;
	struct file_call *file; /* NULL: it has ended */
	struct codec *codec;    /* NULL: none */
	const char *type;
	bool streaming, codec_hungry;
};

static void download_free(struct download *d)
{
	if (d->file)
		file_cancel(d->file);
	if (d->codec)
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

static void download_end(struct download *d)
{
	struct http_request *req = d->req;
	download_free(d);
	http_stream_end(req);
}

static void client_hungry(void *arg)
{
	struct download *d = arg;
	if (d->codec)
		codec_resume(d->codec);
	else if (d->file)
		file_resume(d->file);
}

static void pack_begins(void *arg, uint64_t length, uint64_t offset)
{
	struct download *d = arg;
	const struct http_generator generator = {client_hungry, download_stopped, d};
	(void)length;
	(void)offset;
	d->streaming = true;
	file_pause(d->file);
	if (d->codec)
		codec_pause(d->codec);
	http_stream_begin(d->req, 200, d->type, &generator);
	if (d->codec && d->codec_hungry)
		file_resume(d->file);
}

static void pack_data(void *arg, struct buf *bytes)
{
	struct download *d = arg;
	file_pause(d->file);
	if (d->codec) {
		d->codec_hungry = false;
		codec_push(d->codec, bytes);
	} else {
		http_stream_write(d->req, bytes);
	}
}

static void pack_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct download *d = arg;
	(void)result;
	d->file = NULL;
	if (e)
		download_fail(d, e);
	else if (!d->codec)
		download_end(d);
	else if (d->codec_hungry)
		codec_finish(d->codec);
}

/* The codec has used up what it had. */
static void codec_wants(void *arg)
{
	struct download *d = arg;
	d->codec_hungry = true;
	if (d->file && d->streaming)
		file_resume(d->file);
	else if (!d->file)
		codec_finish(d->codec);
}

static void codec_data(void *arg, struct buf *bytes)
{
	struct download *d = arg;
	codec_pause(d->codec);
	http_stream_write(d->req, bytes);
}

static void codec_ended(void *arg, const struct error *e)
{
	if (e)
		download_fail(arg, e);
	else
		download_end(arg);
}

int handler_send_archive(struct http_request *req, const struct archive_job *job,
	const struct archive_form *form, struct error *e)
{
	static const struct file_events file_events = {
		.content = pack_begins, .data = pack_data, .done = pack_done};
	static const struct codec_events codec_events = {codec_data, codec_wants, codec_ended};
	struct download *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	d->req = req;
	d->type = form->type;
	if (file_begin(job->sandbox, job->user, &job->request, &file_events, d, &d->file, e) < 0) {
		free(d);
		return -1;
	}
	if (form->coded)
		d->codec = codec_new(job->loop, form->kind, &codec_events, d);
	http_on_abort(req, download_stopped, d);
	return 0;
}

/* ---- up ---- */

struct upload {
	struct http_request *req;
	archive_taken_fn *taken;
	struct file_call *file; /* NULL: it has ended */
	struct codec *codec;    /* expands whatever comes; NULL: it has ended, or there is none */
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

static void resume_body(struct upload *u)
{
	if (u->body_paused) {
		u->body_paused = false;
		http_body_resume(u->req);
	}
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
	resume_body(u);
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
	else if (!u->complete)
		resume_body(u);
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
	archive_taken_fn *taken = u->taken;
	u->file = NULL;
	if (e) {
		upload_fail(u, e);
		return;
	}
	upload_free(u);
	taken(req, result);
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

/* A zip archive is for init alone. */
static void plain_data(void *arg, const char *bytes, size_t len)
{
	struct upload *u = arg;
	if (!u->file)
		return;
	file_put_data(u->file, bytes, len);
	if (file_room(u->file) == 0) {
		u->body_paused = true;
		http_body_pause(u->req);
	}
}

static void plain_end(void *arg)
{
	struct upload *u = arg;
	u->complete = true;
	http_on_abort(u->req, upload_aborted, u);
	if (u->file)
		file_put_end(u->file);
}

int handler_take_archive(struct http_request *req, const struct archive_job *job,
	archive_taken_fn *taken, struct error *e)
{
	static const struct file_events file_events = {
		.entry = unpack_entry, .room = unpack_room, .done = unpack_done};
	static const struct codec_events codec_events = {expand_data, expand_wants, expand_ended};
	struct upload *u = calloc(1, sizeof *u);
	if (!u)
		abort();
	u->req = req;
	u->taken = taken;
	if (file_begin(job->sandbox, job->user, &job->request, &file_events, u, &u->file, e) < 0) {
		free(u);
		return -1;
	}
	struct http_body_sink sink = {body_data, body_end, upload_aborted, u};
	if (job->request.fixed.flags & FILE_ZIP)
		sink = (struct http_body_sink){plain_data, plain_end, upload_aborted, u};
	else
		u->codec = codec_new(job->loop, CODEC_EXPAND, &codec_events, u);
	http_body_stream(req, &sink);
	return 0;
}
