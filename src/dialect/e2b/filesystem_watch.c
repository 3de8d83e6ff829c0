/*
 * WatchDir: what happens in a directory, as a stream.
 *
 *     {"start":{}}
 *     {"filesystem":{"name":"sub/file","type":"EVENT_TYPE_CREATE","entry":{…}}}
 *
 * A client that does not read makes the events wait inside the sandbox; when the kernel cannot keep
 * them either the stream ends, because the client would miss some.
 */
#include "dialect/e2b/filesystem.h"
#include "dialect/e2b/watch.h"
#include "op/watch.h"

struct watch_stream {
	const char *path; /* as the client has it */
	struct watch_entry entry;
};

static void watch_stream_put_notice(struct answer *a, const struct file_notice *notice)
{
	struct watch_stream *s = a->own;
	struct watch_event events[2];
	unsigned count = watch_translate(&s->entry, notice, events);
	for (unsigned i = 0; i < count; i++) {
		size_t begin = envelope_begin(&a->out);
		struct json_writer w = {.out = &a->out};
		json_begin_object(&w);
		json_key(&w, "filesystem");
		watch_put_event(&w, &events[i]);
		json_end_object(&w);
		envelope_end(&a->out, begin);
	}
	watch_drop_entry(&s->entry);
}

static int watch_stream_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct watch_stream *s = a->own;
	size_t begin;
	switch (event->kind) {
	case OP_READY:
		begin = envelope_begin(&a->out);
		buf_append_str(&a->out, "{\"start\":{}}");
		envelope_end(&a->out, begin);
		return 0;
	case OP_NOTICE:
		if (event->notice->kind == FILE_EVENT_OVERFLOW)
			return error_set(e, ERROR_RESOURCE_EXHAUSTED,
				"more happened than could be told: watch again, and look");
		watch_stream_put_notice(a, event->notice);
		return 0;
	case OP_DONE:
		return error_set(e, ERROR_NOT_FOUND, "the directory is gone");
	default:
		watch_keep_entry(&s->entry, event);
		return 0;
	}
}

/* A sandbox that went away is a broken connection; all else is told in the last envelope. */
static enum answer_failure watch_stream_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct watch_stream *s = a->own;
	struct error explained;
	if (a->streaming && e->code == ERROR_NOT_RUNNING)
		return ANSWER_ERROR;
	filesystem_explain(s->path, e, &explained);
	*e = explained;
	return rpc_stream_fail(a, e, event);
}

static void watch_stream_finish(struct answer *a)
{
	watch_drop_entry(&((struct watch_stream *)a->own)->entry);
}

static void handle_watch_dir(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/connect+json",
		.pace = ANSWER_LIVE,
		.own_size = sizeof(struct watch_stream),
		.put = watch_stream_put,
		.fail = watch_stream_fail,
		.finish = watch_stream_finish};
	static const char keepalive[] = "\0\0\0\0\x10{\"keepalive\":{}}";
	struct error e = {0};
	struct watch_spec spec = {0};
	struct answer *a = envd_answer(req, &form);
	struct watch_stream *s = a->own;
	s->path = "";
	const cJSON *message = rpc_stream_message(a, &e);
	if (!message || rpc_deadline(req, &a->call.deadline_ms, &e) < 0 ||
		watch_decode(req, message, &spec, &s->path, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	answer_keep_alive(a, keepalive, sizeof keepalive - 1, rpc_keepalive_ms(req));
	a->op = op_watch(&a->call, &spec);
	answer_run(a);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/WatchDir", handle_watch_dir, RPC_BODY_LIMIT,
		.scope = HTTP_SCOPE_READ},
};

const struct route_table filesystem_watch_table = ROUTE_TABLE(routes);
