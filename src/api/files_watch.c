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
#include "api/files.h"
#include "http/sse.h"
#include "op/watch.h"

struct watch_stream {
	bool by_socket;
	bool ready; /* it was told */
};

static struct json_writer watch_message_begin(struct answer *a, const char *type)
{
	const struct watch_stream *s = a->own;
	struct json_writer w = {.out = &a->out};
	if (!s->by_socket)
		sse_begin(&a->out, type, NULL);
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void watch_message_end(struct answer *a, struct json_writer *w)
{
	const struct watch_stream *s = a->own;
	json_end_object(w);
	if (s->by_socket)
		answer_send_text(a);
	else
		sse_end(&a->out);
}

static void watch_put_notice(struct answer *a, const struct file_notice *n)
{
	static const char *const types[FILE_EVENT_KINDS] = {
		[FILE_EVENT_CREATE] = "create",
		[FILE_EVENT_WRITE] = "write",
		[FILE_EVENT_REMOVE] = "remove",
		[FILE_EVENT_RENAME] = "rename",
		[FILE_EVENT_CHMOD] = "chmod",
		[FILE_EVENT_OVERFLOW] = "overflow",
	};
	struct json_writer w = watch_message_begin(a, types[n->kind]);
	if (n->kind != FILE_EVENT_OVERFLOW) {
		files_put_name(&w, "path", n->path);
		if (n->kind == FILE_EVENT_RENAME)
			files_put_name(&w, "to", n->destination);
		json_put_bool(&w, "directory", n->directory);
	}
	watch_message_end(a, &w);
}

static int watch_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct watch_stream *s = a->own;
	if (event->kind == OP_READY) {
		struct json_writer w = watch_message_begin(a, "ready");
		watch_message_end(a, &w);
		s->ready = true;
	} else if (event->kind == OP_NOTICE) {
		watch_put_notice(a, event->notice);
	} else if (event->kind == OP_DONE && !s->ready) {
		return error_set(e, ERROR_UNAVAILABLE, "the watch ended at once");
	}
	return 0;
}

static enum answer_failure watch_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct watch_stream *s = a->own;
	(void)event;
	if (!s->ready)
		return ANSWER_ERROR;
	struct json_writer w = watch_message_begin(a, "error");
	json_put_string(&w, "code", error_name(e->code));
	json_put_string(&w, "message", e->message);
	watch_message_end(a, &w);
	return ANSWER_PUT;
}

static void watch_head(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
}

/* The client has nothing to say. */
static int watch_message(struct answer *a, bool text, const char *data, size_t len, struct error *e)
{
	(void)a;
	(void)text;
	(void)data;
	(void)len;
	(void)e;
	return 0;
}

static int files_watch_decode(struct http_request *req, struct watch_spec *ret, struct error *e)
{
	static const char *const known[] = {"path", "user", "cwd", "recursive", NULL};
	struct files_actor place;
	if (files_query_place(req, known, &place, &ret->path, e) < 0)
		return -1;
	ret->user = place.user;
	ret->cwd = place.cwd;
	return query_bool(req, "recursive", &ret->recursive, e);
}

static void handle_watch(struct http_request *req)
{
	static const struct answer_form form = {.type = "text/event-stream",
		.pace = ANSWER_LIVE,
		.own_size = sizeof(struct watch_stream),
		.put = watch_put,
		.fail = watch_fail,
		.head = watch_head};
	static const struct answer_socket socket = {.message = watch_message};
	struct error e = {0};
	struct watch_spec spec = {0};
	struct answer *a = api_answer(req, &form);
	struct watch_stream *s = a->own;
	if (files_watch_decode(req, &spec, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	s->by_socket = answer_wants_socket(req);
	a->op = op_watch(&a->call, &spec);
	if (s->by_socket) {
		answer_run_socket(a, &socket);
	} else {
		answer_keep_alive(a, SSE_KEEPALIVE, sizeof SSE_KEEPALIVE - 1, SSE_KEEPALIVE_MS);
		answer_run(a);
	}
}

static const struct http_route watch_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/fs/watch", handle_watch, 0},
};

const struct route_table files_watch_table = ROUTE_TABLE(watch_routes);
