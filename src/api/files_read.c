/*
 * The content of a file as an answer: whole, or one range of it. What is small is one write; what
 * is large flows as the client takes it, with its length announced, and is cut off visibly when the
 * file shrinks meanwhile.
 */
#include "api/files_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define SMALL (64u * 1024)

struct reading {
	struct http_request *req;
	struct file_call *file;
	struct files_range range;
	uint64_t size; /* of the file */
	unsigned mode;
	struct buf small;
	bool streaming;
};

static void reading_free(struct reading *r)
{
	buf_finish(&r->small);
	free(r);
}

static void reading_aborted(void *arg)
{
	struct reading *r = arg;
	if (r->file)
		file_cancel(r->file);
	reading_free(r);
}

/* ---- ranges ---- */

/* "bytes=5-9", "bytes=5-", "bytes=-5"; anything else is as if it were not there, as RFC 9110 has
 * it. */
static void parse_range(const char *text, struct files_range *ret)
{
	char *end;
	if (!text || strncasecmp(text, "bytes=", 6) != 0)
		return;
	text += 6;
	bool from_end = text[0] == '-';
	const char *first = text + from_end;
	if (*first < '0' || *first > '9')
		return;
	unsigned long long a = strtoull(first, &end, 10), b = UINT64_MAX;
	if (!from_end && *end == '-') {
		const char *second = ++end;
		if (*second)
			b = strtoull(second, &end, 10);
		if ((*second && (*second < '0' || *second > '9')) || b < a)
			return;
	} else if (!from_end) {
		return;
	}
	if (*end || a > INT64_MAX)
		return;
	ret->given = true;
	ret->from_end = from_end;
	ret->offset = a;
	ret->length = from_end || b == UINT64_MAX ? RECORD_UNKNOWN : b - a + 1;
}

int files_parse_range(struct http_request *req, struct files_range *ret, struct error *e)
{
	int64_t offset = -1, length = -1;
	*ret = (struct files_range){.length = RECORD_UNKNOWN};
	if (files_query_number(req, "offset", INT64_MAX, &offset, e) < 0 ||
		files_query_number(req, "length", INT64_MAX, &length, e) < 0)
		return -1;
	if (offset >= 0 || length >= 0) {
		ret->given = true;
		ret->offset = offset > 0 ? (uint64_t)offset : 0;
		ret->length = length >= 0 ? (uint64_t)length : RECORD_UNKNOWN;
	} else if (!http_header(req, "if-range")) {
		parse_range(http_header(req, "range"), ret);
	}
	return 0;
}

static void add_content_range(struct reading *r, uint64_t offset, uint64_t length)
{
	char text[96];
	if (length == 0)
		snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)r->size);
	else
		snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)offset,
			(unsigned long long)(offset + length - 1), (unsigned long long)r->size);
	http_add_header(r->req, "Content-Range", text);
}

static void refuse_range(struct reading *r)
{
	struct http_request *req = r->req;
	struct error e;
	error_set(&e, ERROR_RANGE_NOT_SATISFIABLE, "the file has %llu bytes",
		(unsigned long long)r->size);
	add_content_range(r, 0, 0);
	reading_aborted(r);
	http_respond_error(req, &e);
}

/* ---- the answer ---- */

static void add_headers(struct http_request *req)
{
	http_add_header(req, "Accept-Ranges", "bytes");
	/* Whatever is in it is not for a browser to guess. */
	http_add_header(req, "X-Content-Type-Options", "nosniff");
}

static void stream_proceed(void *arg)
{
	struct reading *r = arg;
	if (r->file)
		file_resume(r->file);
}

static void stream_begin(struct reading *r, uint64_t length)
{
	const struct http_generator generator = {stream_proceed, reading_aborted, r};
	int status = r->range.given ? 206 : 200;
	static const char type[] = "application/octet-stream";
	r->streaming = true;
	add_headers(r->req);
	if (r->file)
		file_pause(r->file);
	if (length == RECORD_UNKNOWN)
		http_stream_begin(r->req, status, type, &generator);
	else
		http_stream_begin_sized(r->req, status, type, length, &generator);
}

static void take_content(void *arg, uint64_t length, uint64_t offset)
{
	struct reading *r = arg;
	bool known = length != RECORD_UNKNOWN;
	/* What says to be empty has an end that nobody knows beforehand (/proc). */
	if (r->range.given && known && r->size > 0) {
		if (length == 0 && r->range.length > 0) {
			refuse_range(r);
			return;
		}
		add_content_range(r, offset, length);
	} else {
		r->range.given = false;
	}
	if (!known || length > SMALL)
		stream_begin(r, length);
}

static void take_data(void *arg, struct buf *bytes)
{
	struct reading *r = arg;
	if (!r->streaming) {
		buf_append(&r->small, bytes->data, bytes->len);
		return;
	}
	file_pause(r->file);
	http_stream_write(r->req, bytes);
}

static void take_entry(void *arg, const struct file_entry *entry)
{
	struct reading *r = arg;
	r->size = entry->size;
}

static void respond(struct reading *r, const struct error *e)
{
	struct http_request *req = r->req;
	struct buf body = r->small;
	int status = r->range.given ? 206 : 200;
	r->small = (struct buf){0};
	bool streaming = r->streaming;
	reading_free(r);
	if (streaming && e) {
		http_stream_abort(req);
	} else if (streaming) {
		http_stream_end(req);
	} else if (e) {
		http_respond_error(req, e);
	} else {
		add_headers(req);
		http_respond(req, status, "application/octet-stream", &body);
		return;
	}
	buf_finish(&body);
}

static void reading_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct reading *r = arg;
	(void)result;
	r->file = NULL;
	respond(r, e);
}

/* ---- the head alone ---- */

static void take_head(void *arg, const struct file_entry *entry)
{
	struct reading *r = arg;
	r->size = entry->size;
	r->mode = entry->mode;
}

static void head_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct reading *r = arg;
	struct error reason;
	(void)result;
	r->file = NULL;
	if (!e && !S_ISREG(r->mode)) {
		error_set(&reason,
			S_ISDIR(r->mode) ? ERROR_IS_A_DIRECTORY : ERROR_NOT_A_REGULAR_FILE,
			"it is not a regular file");
		e = &reason;
	}
	if (e)
		respond(r, e);
	else
		stream_begin(r, r->size ? r->size : RECORD_UNKNOWN);
}

void files_read(struct http_request *req, struct sandbox *s, const struct files_place *place,
	const char *path, const struct files_range *range)
{
	static const struct file_events events = {.entry = take_entry,
		.content = take_content,
		.data = take_data,
		.done = reading_done};
	static const struct file_events head_events = {.entry = take_head, .done = head_done};
	bool head = http_method(req) == HTTP_HEAD;
	struct error e;
	struct reading *r = calloc(1, sizeof *r);
	if (!r)
		abort();
	r->req = req;
	struct file_request request = {
		.fixed = {.op = head ? FILE_STAT : FILE_READ,
			.flags = head              ? FILE_FOLLOW
				 : range->from_end ? FILE_FROM_END
						   : 0,
			.offset = range->offset,
			.length = range->length},
		.text = {[FILE_CWD] = place->cwd, [FILE_PATH] = path},
	};
	if (!head)
		r->range = *range;
	if (file_begin(s, place->user, &request, head ? &head_events : &events, r, &r->file, &e) <
		0) {
		free(r);
		http_respond_error(req, &e);
		return;
	}
	http_on_abort(req, reading_aborted, r);
}
