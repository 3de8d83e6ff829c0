#include "api/stream.h"

#include <string.h>

#include "api/encode.h"
#include "api/processes.h"
#include "http/sse.h"
#include "base/utf8.h"

enum stream_format stream_format_of(const char *accept)
{
	if (accept && strstr(accept, "application/x-ndjson"))
		return STREAM_NDJSON;
	if (accept && strstr(accept, "text/event-stream"))
		return STREAM_SSE;
	return STREAM_NONE;
}

const char *stream_content_type(enum stream_format format)
{
	return format == STREAM_SSE ? "text/event-stream" : "application/x-ndjson";
}

void stream_begin(struct answer *a, enum stream_format format)
{
	((struct stream *)a->own)->format = format;
	a->type = stream_content_type(format);
	if (format == STREAM_SSE)
		answer_keep_alive(a, SSE_KEEPALIVE, sizeof SSE_KEEPALIVE - 1, SSE_KEEPALIVE_MS);
}

/* ---- events ---- */

static struct json_writer event_begin(const struct stream *s, const char *type, struct buf *out)
{
	struct json_writer w = {.out = out};
	if (s->format == STREAM_SSE)
		sse_begin(out, type, NULL);
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void event_end(const struct stream *s, struct json_writer *w)
{
	json_end_object(w);
	if (s->format == STREAM_SSE)
		sse_end(w->out);
	else
		buf_append_char(w->out, '\n');
}

static void api_stream_put_start(
	struct stream *s, const struct execution_view *view, struct buf *out)
{
	struct json_writer w = event_begin(s, "start", out);
	json_put_string(&w, "executionId", view->id);
	json_put_string(&w, "sandboxId", view->sandbox_id);
	json_put_int(&w, "pid", view->pid);
	event_end(s, &w);
}

static void api_stream_put_data(
	struct stream *s, unsigned index, uint64_t offset, const struct buf *data, struct buf *out)
{
	struct json_writer w = event_begin(s, index == 0 ? "stdout" : "stderr", out);
	json_put_int(&w, "offset", (int64_t)offset);
	encode_output(&w, "data", data, s->base64);
	event_end(s, &w);
}

static void put_exit(struct stream *s, const struct execution_view *view, struct buf *out)
{
	struct json_writer w = event_begin(s, "exit", out);
	json_encode(&w, &execution_model, view, NULL);
	event_end(s, &w);
}

static void put_truncated(
	struct stream *s, unsigned index, uint64_t from, uint64_t to, struct buf *out)
{
	struct json_writer w = event_begin(s, "truncated", out);
	json_put_string(&w, "stream", index == 0 ? "stdout" : "stderr");
	json_put_int(&w, "from", (int64_t)from);
	json_put_int(&w, "to", (int64_t)to);
	event_end(s, &w);
}

/* ---- text that is cut in the middle of a character ---- */

static void hold_back(struct stream *s, unsigned index, struct buf *data)
{
	size_t tail = utf8_incomplete_tail(data->data, data->len);
	buf_append(&s->carry[index], data->data + data->len - tail, tail);
	data->len -= tail;
}

static void put_carry(struct stream *s, unsigned index, struct buf *out)
{
	if (s->carry[index].len == 0)
		return;
	api_stream_put_data(
		s, index, s->position[index] - s->carry[index].len, &s->carry[index], out);
	s->carry[index].len = 0;
}

/* Output goes out together with bytes that were held back before. */
static void api_stream_put_output(struct stream *s, const struct op_output *o, struct buf *out)
{
	unsigned i = o->stream;
	if (o->missing > 0) {
		put_carry(s, i, out);
		put_truncated(s, i, o->offset - o->missing, o->offset, out);
	}
	autobuf whole = buf_take(&s->carry[i]);
	uint64_t begin = o->offset - whole.len;
	buf_append(&whole, o->bytes->data, o->bytes->len);
	s->position[i] = o->offset + o->bytes->len;
	if (!s->base64)
		hold_back(s, i, &whole);
	if (whole.len > 0)
		api_stream_put_data(s, i, begin, &whole, out);
}

static int stream_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct stream *s = a->own;
	(void)e;
	if (event->kind == OP_STARTED)
		api_stream_put_start(s, event->execution, &a->out);
	else if (event->kind == OP_OUTPUT)
		api_stream_put_output(s, &event->output, &a->out);
	else
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			put_carry(s, i, &a->out);
	if (event->kind == OP_EXITED)
		put_exit(s, event->execution, &a->out);
	return 0;
}

static void stream_head(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
}

static void stream_finish(struct answer *a)
{
	struct stream *s = a->own;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		buf_finish(&s->carry[i]);
}

const struct answer_form stream_form = {.pace = ANSWER_LIVE,
	.own_size = sizeof(struct stream),
	.put = stream_put,
	.fail = process_fail,
	.head = stream_head,
	.finish = stream_finish};
