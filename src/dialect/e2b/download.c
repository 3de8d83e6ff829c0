/* A file's bytes as the answer to a request, as the client takes them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/files.h"

#define HIGH_WATER (512u * 1024)

/* ---- ranges ---- */

struct range {
	bool wanted, from_end;
	uint64_t offset, length;
};

static bool parse_number(const char *text, size_t len, uint64_t *ret)
{
	*ret = 0;
	if (len == 0 || len > 18)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*ret = *ret * 10 + (uint64_t)(text[i] - '0');
	}
	return true;
}

/* "bytes=0-99", "bytes=100-", "bytes=-100" */
static struct range parse_range(const char *text)
{
	struct range none = {.length = RECORD_UNKNOWN}, r = none;
	uint64_t last;
	if (!text || strncmp(text, "bytes=", 6) != 0 || strchr(text, ','))
		return none;
	const char *first = text + 6, *dash = strchr(first, '-');
	if (!dash)
		return none;
	r.wanted = true;
	if (dash == first) {
		r.from_end = true;
		return parse_number(dash + 1, strlen(dash + 1), &r.offset) && r.offset ? r : none;
	}
	if (!parse_number(first, (size_t)(dash - first), &r.offset))
		return none;
	if (!dash[1])
		return r;
	if (!parse_number(dash + 1, strlen(dash + 1), &last) || last < r.offset)
		return none;
	r.length = last - r.offset + 1;
	return r;
}

/* ---- the answer ---- */

struct download {
	struct http_request *req;
	struct file_call *file; /* NULL once it is done */
	char *path, *user;
	struct range range;
	uint64_t size; /* of the file */
	struct buf out;
	bool streaming, hungry, paused, broken;
};

static void download_free(struct download *d)
{
	buf_finish(&d->out);
	free(d->path);
	free(d->user);
	free(d);
}

static void download_aborted(void *arg)
{
	struct download *d = arg;
	if (d->file)
		file_cancel(d->file);
	download_free(d);
}

static void download_pump(struct download *d)
{
	struct http_request *req = d->req;
	bool last = !d->file;
	if (!d->hungry || (d->out.len == 0 && !last))
		return;
	if (d->broken) {
		download_free(d);
		http_stream_abort(req);
		return;
	}
	struct buf out = d->out;
	d->out = (struct buf){0};
	d->hungry = false;
	if (last)
		download_free(d);
	if (out.len > 0)
		http_stream_write(req, &out);
	if (last) {
		http_stream_end(req);
	} else if (d->paused) {
		d->paused = false;
		file_resume(d->file);
	}
}

static void download_proceed(void *arg)
{
	struct download *d = arg;
	d->hungry = true;
	download_pump(d);
}

static void add_content_range(struct download *d, uint64_t offset, uint64_t length)
{
	char text[96];
	snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)offset,
		(unsigned long long)(offset + length - 1), (unsigned long long)d->size);
	http_add_header(d->req, "Content-Range", text);
}

/* The name behind filename=, where it needs no quoting that clients disagree about. */
static void add_disposition(struct download *d)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	const char *name = entry_name(d->path);
	char text[300];
	bool is_plain = strspn(name, plain) == strlen(name) && strlen(name) <= 255 && name[0];
	snprintf(text, sizeof text, "inline%s%s", is_plain ? "; filename=" : "",
		is_plain ? name : "");
	http_add_header(d->req, "Content-Disposition", text);
}

static void begin_answer(struct download *d, uint64_t offset, uint64_t length)
{
	const struct http_generator generator = {download_proceed, download_aborted, d};
	bool partial = d->range.wanted && length != RECORD_UNKNOWN && length > 0;
	d->streaming = true;
	add_disposition(d);
	http_add_header(d->req, "Vary", "Accept-Encoding");
	http_add_header(d->req, "Accept-Ranges", "bytes");
	if (partial)
		add_content_range(d, offset, length);
	if (length == RECORD_UNKNOWN)
		http_stream_begin(d->req, 200, "application/octet-stream", &generator);
	else
		http_stream_begin_sized(d->req, partial ? 206 : 200, "application/octet-stream",
			length, &generator);
}

/* ---- what the core tells ---- */

static void download_fail(struct download *d, const struct error *why)
{
	struct error e;
	struct http_request *req = d->req;
	files_explain(d->path, d->user, why, &e);
	download_free(d);
	http_respond_error(req, &e);
}

static void file_found(void *arg, const struct file_entry *entry)
{
	((struct download *)arg)->size = entry->size;
}

static void content_begins(void *arg, uint64_t length, uint64_t offset)
{
	struct download *d = arg;
	struct error e;
	if (d->range.wanted && offset >= d->size && d->size > 0) {
		error_set(&e, ERROR_RANGE_NOT_SATISFIABLE, "the file has %llu bytes only",
			(unsigned long long)d->size);
		file_cancel(d->file);
		download_fail(d, &e);
		return;
	}
	begin_answer(d, offset, length);
}

static void bytes_came(void *arg, struct buf *bytes)
{
	struct download *d = arg;
	buf_append(&d->out, bytes->data, bytes->len);
	if (d->out.len > HIGH_WATER && !d->paused) {
		d->paused = true;
		file_pause(d->file);
	}
	download_pump(d);
}

static void file_ended(void *arg, const struct file_result *result, const struct error *e)
{
	struct download *d = arg;
	(void)result;
	d->file = NULL;
	if (!d->streaming) {
		download_fail(d, e);
		return;
	}
	d->broken = e != NULL || d->out.failed;
	download_pump(d);
}

static const struct file_events download_events = {
	.entry = file_found, .content = content_begins, .data = bytes_came, .done = file_ended};

int download_begin(struct http_request *req, const struct files_place *at,
	const struct download_target *target, struct error *e)
{
	struct download *d = calloc(1, sizeof *d);
	if (!d)
		abort();
	d->req = req;
	d->path = e2b_copy(target->given);
	d->user = e2b_copy(target->user);
	d->range = parse_range(http_header(req, "range"));
	struct file_request request = {.fixed = {.op = FILE_READ,
					       .flags = d->range.from_end ? FILE_FROM_END : 0,
					       .offset = d->range.offset,
					       .length = d->range.length}};
	request.text[FILE_PATH] = target->path;
	request.text[FILE_CWD] = target->cwd;
	int r = files_begin_at(at, &request, &download_events, d, &d->file, e);
	if (r < 0)
		download_free(d);
	else
		http_on_abort(req, download_aborted, d);
	return r;
}
