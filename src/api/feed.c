#include "api/feed.h"

#include <stdlib.h>

#define WINDOW (256u * 1024)

void feed_drop(struct feed *f)
{
	if (f->free)
		f->free(f);
	buf_finish(&f->out);
	free(f);
}

static void write_out(struct feed *f)
{
	if (!f->begun || !f->can_write || (f->out.len == 0 && !f->ended))
		return;
	f->can_write = false;
	if (f->out.len > 0)
		http_stream_write(f->req, &f->out);
	if (f->ended) {
		http_stream_end(f->req);
		feed_drop(f);
	} else if (f->source) {
		f->how->resume(f->source);
	}
}

static void proceed(void *arg)
{
	struct feed *f = arg;
	f->can_write = true;
	write_out(f);
}

static void stopped(void *arg)
{
	struct feed *f = arg;
	if (f->source)
		f->how->cancel(f->source);
	feed_drop(f);
}

void *feed_new(
	size_t size, struct http_request *req, const char *type, const struct feed_source *how)
{
	struct feed *f = calloc(1, size);
	if (!f)
		abort();
	f->req = req;
	f->type = type;
	f->how = how;
	http_on_abort(req, stopped, f);
	return f;
}

static void begin(struct feed *f)
{
	const struct http_generator generator = {proceed, stopped, f};
	if (f->begun)
		return;
	f->begun = true;
	http_stream_begin(f->req, 200, f->type, &generator);
}

void feed_flush(struct feed *f)
{
	begin(f);
	if (f->out.len >= WINDOW && f->source)
		f->how->pause(f->source);
	write_out(f);
}

void feed_end(struct feed *f, const struct error *e)
{
	f->source = NULL;
	if (e && f->begun) {
		http_stream_abort(f->req);
		feed_drop(f);
	} else if (e) {
		http_respond_error(f->req, e);
		feed_drop(f);
	} else {
		begin(f);
		f->ended = true;
		write_out(f);
	}
}

static void take_bytes(void *arg, const char *bytes, size_t len)
{
	struct feed *feed = arg;
	buf_append(&feed->out, bytes, len);
	feed_flush(feed);
}

static void take_end(void *arg, const struct error *e)
{
	feed_end(arg, e);
}

const struct bundle_export_events feed_bundle_events = {take_bytes, take_end};
