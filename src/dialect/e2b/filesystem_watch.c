/*
 * WatchDir: what happens in a directory, as a stream.
 *
 *     {"start":{}}
 *     {"filesystem":{"name":"sub/file","type":"EVENT_TYPE_CREATE","entry":{…}}}
 *
 * With includeEntry what was created, written or changed is looked up before its event goes out,
 * one after the other, so that the order stays. While the client does not read, nothing is
 * collected here; what the kernel cannot keep then either ends the stream, because the client would
 * miss it.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/filesystem.h"
#include "dialect/e2b/watch.h"

#define KEEPALIVE  "{\"keepalive\":{}}"
#define HIGH_WATER (64u * 1024)

struct watch_stream {
	const struct server *server;
	struct http_request *req; /* until the stream has begun */
	struct connect_stream *stream;
	struct watch watch;
	char *path;
	bool announced;
	struct buf out; /* events in their envelopes, not collected */
	bool ended;
	struct error failure;
};

static void stream_free(struct watch_stream *w)
{
	watch_stop(&w->watch);
	buf_finish(&w->out);
	free(w->path);
	free(w);
}

static void stream_closed(void *arg, bool client_left)
{
	(void)client_left;
	stream_free(arg);
}

static enum connect_progress stream_collect(void *arg, struct buf *out, struct error *e)
{
	struct watch_stream *w = arg;
	if (!w->announced) {
		size_t begin = envelope_begin(out);
		buf_append_str(out, "{\"start\":{}}");
		envelope_end(out, begin);
	}
	w->announced = true;
	buf_append(out, w->out.data, w->out.len);
	buf_finish(&w->out);
	if (w->ended) {
		*e = w->failure;
		return e->code == ERROR_NOT_RUNNING ? CONNECT_RESET : CONNECT_FAILED;
	}
	watch_resume(&w->watch);
	return CONNECT_MORE;
}

static void watch_ready(void *arg)
{
	struct watch_stream *w = arg;
	const struct connect_source source = {stream_collect, KEEPALIVE, stream_closed, w};
	w->stream = connect_stream_begin(take_ptr(w->req), w->server->loop, &source);
}

static void watch_event(void *arg, const struct watch_event *event)
{
	struct watch_stream *w = arg;
	size_t begin = envelope_begin(&w->out);
	struct json_writer json = {.out = &w->out};
	json_begin_object(&json);
	json_key(&json, "filesystem");
	watch_put_event(&json, event);
	json_end_object(&json);
	envelope_end(&w->out, begin);
	if (w->out.len > HIGH_WATER)
		watch_pause(&w->watch);
	connect_stream_wake(w->stream);
}

static void watch_ended(void *arg, const struct error *why)
{
	struct watch_stream *w = arg;
	struct error e;
	struct http_request *req = w->req;
	filesystem_explain(w->path, why, &e);
	if (!w->stream) {
		stream_free(w);
		connect_stream_refuse(req, &e);
		return;
	}
	w->ended = true;
	w->failure = e;
	connect_stream_wake(w->stream);
}

static const struct watch_events watch_events = {watch_ready, watch_event, watch_ended};

static void stream_aborted(void *arg)
{
	stream_free(arg);
}

static void handle_watch_dir(struct http_request *req)
{
	struct error e = {0}, explained;
	struct watch_message fields;
	cJSON *message = connect_stream_request(req);
	if (!message)
		return;
	struct watch_stream *w = calloc(1, sizeof *w);
	if (!w)
		abort();
	w->req = req;
	w->server = server_of(req);
	if (connect_timeout_ms(req) < 0) {
		free(w);
	} else if (watch_decode(message, &fields, &e) < 0 ||
		   watch_start(&w->watch, req, &fields, &watch_events, w, &e) < 0) {
		filesystem_explain("", &e, &explained);
		free(w);
		connect_stream_refuse(req, &explained);
	} else {
		if (!(w->path = strdup(fields.path)))
			abort();
		http_on_abort(req, stream_aborted, w);
	}
	cJSON_Delete(message);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/WatchDir", handle_watch_dir, CONNECT_BODY_LIMIT},
};

const struct route_table filesystem_watch_table = ROUTE_TABLE(routes);
