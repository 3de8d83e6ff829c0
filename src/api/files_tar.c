/*
 * …/fs/tar: a directory down as an archive by GET, an archive up into a directory by PUT. Both
 * flow: neither the archive nor what is in it is ever held. Compression is done by threads, a step
 * at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "api/files.h"
#include "box/codec.h"

/* ---- down ---- */

struct download {
	struct http_request *req;
	struct file_call *file; /* NULL: it has ended */
	struct codec *codec;    /* NULL: none */
	const char *type;
	bool streaming;
	bool codec_hungry, client_hungry;
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

static void download_fail(struct download *d, const struct error *e)
{
	struct http_request *req = d->req;
	bool streaming = d->streaming;
	download_free(d);
	/* Once it flows, all we can say is that this was not the end. */
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

static void archive_begins(void *arg, uint64_t length, uint64_t offset)
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

static void archive_data(void *arg, struct buf *bytes)
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

static void archive_done(void *arg, const struct file_result *result, const struct error *e)
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

static int parse_compression(
	struct http_request *req, struct download *d, enum codec_kind *kind, struct error *e)
{
	static const struct {
		const char *name, *type;
		enum codec_kind kind;
	} kinds[] = {
		{"none", "application/x-tar", CODEC_EXPAND},
		{"gzip", "application/gzip", CODEC_GZIP},
		{"zstd", "application/zstd", CODEC_ZSTD},
	};
	const char *text = http_query(req, "compression");
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strcmp(text ? text : "none", kinds[i].name) == 0) {
			d->type = kinds[i].type;
			*kind = kinds[i].kind;
			return 0;
		}
	}
	return error_set_field(e, ERROR_INVALID_FIELD, "compression",
		"\"compression\" must be \"none\", \"gzip\" or \"zstd\"");
}

static int begin_download(struct http_request *req, struct download *d, struct error *e)
{
	static const char *const known[] = {"path", "user", "cwd", "compression", NULL};
	static const struct file_events file_events = {
		.content = archive_begins, .data = archive_data, .done = archive_done};
	static const struct codec_events codec_events = {codec_data, codec_wants, codec_ended};
	struct files_place place;
	enum codec_kind kind = CODEC_EXPAND;
	struct file_request request = {.fixed = {.op = FILE_PACK}};
	if (files_check_query(req, known, e) < 0 || files_query_place(req, &place, e) < 0 ||
		files_query_path(req, &request.text[FILE_PATH], e) < 0 ||
		parse_compression(req, d, &kind, e) < 0)
		return -1;
	struct sandbox *s = sandbox_find(api_box(req), api_tenant(req), http_param(req, "id"));
	if (!s)
		return error_set(e, ERROR_NOT_FOUND, "there is no such sandbox");
	request.text[FILE_CWD] = place.cwd;
	if (file_begin(s, place.user, &request, &file_events, d, &d->file, e) < 0)
		return -1;
	if (kind != CODEC_EXPAND)
		d->codec = codec_new(((struct api *)http_ctx(req))->loop, kind, &codec_events, d);
	return 0;
}

static void handle_pack(struct http_request *req)
{
	struct error e;
	struct download *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	d->req = req;
	if (begin_download(req, d, &e) < 0) {
		free(d);
		http_respond_error(req, &e);
		return;
	}
	http_on_abort(req, download_stopped, d);
}

/* ---- up ---- */

struct upload {
	struct http_request *req;
	struct file_call *file; /* NULL: it has ended */
	struct codec *codec;    /* expands whatever comes; NULL: it has ended */
	bool codec_hungry;
	struct buf waiting; /* one piece of the body, until the codec is hungry */
	bool complete;      /* the body */
	bool body_paused;
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
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	u->file = NULL;
	if (e) {
		upload_fail(u, e);
		return;
	}
	json_begin_object(&w);
	json_put_int(&w, "count", (int64_t)result->count);
	json_end_object(&w);
	upload_free(u);
	api_respond_json(req, 200, &body);
}

/* ---- the body ---- */

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

static int begin_upload(struct http_request *req, struct upload *u, struct error *e)
{
	static const char *const known[] = {"path", "user", "cwd", "owners", "parents", NULL};
	static const struct file_events file_events = {
		.entry = unpack_entry, .room = unpack_room, .done = unpack_done};
	static const struct codec_events codec_events = {expand_data, expand_wants, expand_ended};
	struct files_place place;
	struct file_request request = {.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS}};
	unsigned *flags = &request.fixed.flags;
	if (files_check_query(req, known, e) < 0 || files_query_place(req, &place, e) < 0 ||
		files_query_path(req, &request.text[FILE_PATH], e) < 0 ||
		files_query_flag(req, "owners", FILE_OWNERS, flags, e) < 0 ||
		files_query_flag(req, "parents", FILE_PARENTS, flags, e) < 0)
		return -1;
	struct sandbox *s = sandbox_find(api_box(req), api_tenant(req), http_param(req, "id"));
	if (!s)
		return error_set(e, ERROR_NOT_FOUND, "there is no such sandbox");
	request.text[FILE_CWD] = place.cwd;
	if (file_begin(s, place.user, &request, &file_events, u, &u->file, e) < 0)
		return -1;
	u->codec = codec_new(((struct api *)http_ctx(req))->loop, CODEC_EXPAND, &codec_events, u);
	return 0;
}

static void handle_unpack(struct http_request *req)
{
	struct error e;
	struct upload *u = calloc(1, sizeof *u);
	if (!u)
		abort();
	u->req = req;
	if (begin_upload(req, u, &e) < 0) {
		free(u);
		http_respond_error(req, &e);
		return;
	}
	struct http_body_sink sink = {body_data, body_end, upload_aborted, u};
	http_body_stream(req, &sink);
}

static const struct http_route tar_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/fs/tar", handle_pack, 0},
	{HTTP_PUT, "/v1/sandboxes/{id}/fs/tar", handle_unpack, FILES_UPLOAD_MAX,
		.streams_body = true},
};

const struct api_table files_tar_table = API_TABLE(tar_routes);
