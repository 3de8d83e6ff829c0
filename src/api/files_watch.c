/*
 * GET …/fs/watch: what happens in a directory, as server-sent events or, to a WebSocket's
 * handshake, as text messages. One JSON object each:
 *
 *     {"type":"ready"}                                 from now on
 *     {"type":"create"|"write"|"remove"|"chmod","path":"sub/file","directory":false}
 *     {"type":"rename","path":"old","to":"new","directory":false}
 *     {"type":"overflow"}                              events were lost: look again
 *     {"type":"error","code","message"}                and then the end
 *
 * Paths are relative to the directory; "" is the directory itself, which is gone then. A client
 * that does not read makes the events wait inside, until the kernel drops some and says so.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/files.h"
#include "http/sse.h"
#include "http/websocket.h"

#define PENDING_MAX (256u * 1024)

struct watching {
	struct http_request *req; /* until there is a socket */
	struct websocket *socket; /* NULL: by events */
	struct file_call *file;   /* NULL: it has ended */
	bool wants_socket;
	bool streaming, hungry, ended;
	struct buf pending; /* events that the client has not taken */
};

static const char *const type_names[FILE_EVENT_KINDS] = {
	[FILE_EVENT_CREATE] = "create",
	[FILE_EVENT_WRITE] = "write",
	[FILE_EVENT_REMOVE] = "remove",
	[FILE_EVENT_RENAME] = "rename",
	[FILE_EVENT_CHMOD] = "chmod",
	[FILE_EVENT_OVERFLOW] = "overflow",
};

static void watching_free(struct watching *w)
{
	if (w->file)
		file_cancel(w->file);
	buf_finish(&w->pending);
	free(w);
}

static void client_gone(void *arg)
{
	watching_free(arg);
}

/* ---- to the client ---- */

static void flush_events(struct watching *w)
{
	struct http_request *req = w->req;
	if (!w->hungry || (w->pending.len == 0 && !w->ended))
		return;
	struct buf events = w->pending;
	bool last = w->ended;
	w->pending = (struct buf){0};
	w->hungry = false;
	if (last)
		watching_free(w);
	else
		file_resume(w->file);
	if (events.len > 0)
		http_stream_write(req, &events);
	buf_finish(&events);
	if (last)
		http_stream_end(req);
}

static void client_hungry(void *arg)
{
	struct watching *w = arg;
	w->hungry = true;
	flush_events(w);
}

static void put_object(struct watching *w, const char *type, const struct buf *object)
{
	if (w->socket) {
		websocket_send(w->socket, WEBSOCKET_TEXT, object->data, object->len);
		if (websocket_queued(w->socket) > PENDING_MAX && w->file)
			file_pause(w->file);
		return;
	}
	sse_put(&w->pending, type, NULL, object->data, object->len);
	if (w->pending.len > PENDING_MAX && w->file)
		file_pause(w->file);
}

static struct json_writer begin_object(struct buf *out, const char *type)
{
	struct json_writer j = {.out = out};
	json_begin_object(&j);
	json_put_string(&j, "type", type);
	return j;
}

/* ---- from inside ---- */

static void watch_notice(void *arg, const struct file_notice *n)
{
	struct watching *w = arg;
	autobuf text = {0};
	struct json_writer j = begin_object(&text, type_names[n->kind]);
	if (n->kind != FILE_EVENT_OVERFLOW) {
		files_put_name(&j, "path", n->path);
		if (n->kind == FILE_EVENT_RENAME)
			files_put_name(&j, "to", n->destination);
		json_put_bool(&j, "directory", n->directory);
	}
	json_end_object(&j);
	put_object(w, type_names[n->kind], &text);
	flush_events(w);
}

static const struct websocket_events socket_events;

static int open_socket(struct watching *w)
{
	http_on_abort(w->req, NULL, NULL);
	if (http_upgrade_websocket(w->req, &socket_events, w, &w->socket) < 0)
		return -1;
	w->req = NULL;
	return 0;
}

static void open_stream(struct watching *w)
{
	const struct http_generator generator = {client_hungry, client_gone, w};
	w->streaming = true;
	http_add_header(w->req, "Cache-Control", "no-store");
	http_stream_begin(w->req, 200, "text/event-stream", &generator);
	sse_keep_alive(w->req);
}

static void watch_ready(void *arg)
{
	struct watching *w = arg;
	autobuf text = {0};
	if (w->wants_socket && open_socket(w) < 0) {
		watching_free(w);
		return;
	}
	if (!w->wants_socket)
		open_stream(w);
	struct json_writer j = begin_object(&text, "ready");
	json_end_object(&j);
	put_object(w, "ready", &text);
}

static void put_error(struct watching *w, const struct error *e)
{
	autobuf text = {0};
	struct json_writer j = begin_object(&text, "error");
	json_put_string(&j, "code", error_name(e->code));
	json_put_string(&j, "message", e->message);
	json_end_object(&j);
	put_object(w, "error", &text);
}

static void watch_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct watching *w = arg;
	struct http_request *req = w->req;
	struct websocket *socket = w->socket;
	(void)result;
	w->file = NULL;
	if (!socket && !w->streaming) {
		struct error unexpected;
		error_set(&unexpected, ERROR_UNAVAILABLE, "the watch ended at once");
		watching_free(w);
		http_respond_error(req, e ? e : &unexpected);
		return;
	}
	if (e)
		put_error(w, e);
	w->ended = true;
	if (!socket) {
		flush_events(w);
		return;
	}
	watching_free(w);
	websocket_close(socket, e ? WEBSOCKET_INTERNAL : WEBSOCKET_NORMAL, NULL);
}

/* ---- the socket ---- */

/* The client has nothing to say. */
static void socket_message(void *arg, enum websocket_kind kind, const char *data, size_t len)
{
	(void)arg;
	(void)kind;
	(void)data;
	(void)len;
}

static void socket_writable(void *arg)
{
	struct watching *w = arg;
	if (w->file)
		file_resume(w->file);
}

static void socket_closed(void *arg, unsigned code, const char *reason)
{
	(void)code;
	(void)reason;
	watching_free(arg);
}

static const struct websocket_events socket_events = {
	.message = socket_message,
	.writable = socket_writable,
	.closed = socket_closed,
	.message_max = 4096,
};

/* ---- the begin ---- */

static int begin_watch(struct http_request *req, struct watching *w, struct error *e)
{
	static const char *const known[] = {"path", "user", "cwd", "recursive", NULL};
	static const struct file_events events = {
		.ready = watch_ready, .notice = watch_notice, .done = watch_done};
	struct files_place place;
	struct file_request request = {.fixed = {.op = FILE_WATCH}};
	if (files_check_query(req, known, e) < 0 || files_query_place(req, &place, e) < 0 ||
		files_query_path(req, &request.text[FILE_PATH], e) < 0 ||
		files_query_flag(req, "recursive", FILE_RECURSIVE, &request.fixed.flags, e) < 0)
		return -1;
	struct sandbox *s =
		sandbox_find(server_of(req)->box, tenant_of(req), http_param(req, "id"));
	if (!s)
		return error_set(e, ERROR_NOT_FOUND, "there is no such sandbox");
	request.text[FILE_CWD] = place.cwd;
	return file_begin(s, place.user, &request, &events, w, &w->file, e);
}

static void handle_watch(struct http_request *req)
{
	struct error e;
	const char *upgrade = http_header(req, "upgrade");
	struct watching *w = calloc(1, sizeof *w);
	if (!w)
		abort();
	w->req = req;
	w->wants_socket = upgrade && strcasecmp(upgrade, "websocket") == 0;
	if (begin_watch(req, w, &e) < 0) {
		free(w);
		http_respond_error(req, &e);
		return;
	}
	http_on_abort(req, client_gone, w);
}

static const struct http_route watch_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/fs/watch", handle_watch, 0},
};

const struct route_table files_watch_table = ROUTE_TABLE(watch_routes);
