#include "api/stream.h"

#include <string.h>

#include "api/encode.h"
#include "http/sse.h"
#include "http/utf8.h"

#define CHUNK_SIZE (64u * 1024)

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

static void announce(struct stream *s, const struct execution_view *view, struct buf *out)
{
	struct json_writer w = event_begin(s, "start", out);
	json_put_string(&w, "executionId", view->id);
	json_put_string(&w, "sandboxId", view->sandbox_id);
	json_put_int(&w, "pid", view->pid);
	event_end(s, &w);
	s->announced = true;
}

static void put_data(
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
	encode_execution(&w, view);
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

/* What is held back ends at `at`. */
static void put_carry(struct stream *s, unsigned index, uint64_t at, struct buf *out)
{
	if (s->carry[index].len == 0)
		return;
	put_data(s, index, at - s->carry[index].len, &s->carry[index], out);
	s->carry[index].len = 0;
}

/* What can be read goes out, together with what was held back before. */
static void collect_stream(struct stream *s, struct execution *x, struct execution_watcher *w,
	unsigned index, struct buf *out)
{
	autobuf data = {0};
	uint64_t before = w->position[index];
	if (w->ignores[index])
		return;
	if (!execution_read(x, w, index, CHUNK_SIZE, &data)) {
		s->failed = true;
		return;
	}
	uint64_t begin = w->position[index] - data.len;
	if (begin > before) {
		put_carry(s, index, before, out);
		put_truncated(s, index, before, begin, out);
	}
	if (data.len == 0)
		return;
	autobuf whole = s->carry[index];
	s->carry[index] = (struct buf){0};
	begin -= whole.len;
	buf_append(&whole, data.data, data.len);
	if (!s->base64)
		hold_back(s, index, &whole);
	if (whole.len > 0)
		put_data(s, index, begin, &whole, out);
}

static bool is_all_read(const struct stream *s, const struct execution_view *view,
	const struct execution_watcher *w)
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		uint64_t end = s->stops ? s->until[i] : view->length[i];
		if (!w->ignores[i] && w->position[i] < end)
			return false;
	}
	return true;
}

bool stream_collect(
	struct stream *s, struct execution *x, struct execution_watcher *w, struct buf *out)
{
	struct execution_view view;
	execution_view(x, &view);
	if (!s->announced) {
		execution_record(x);
		announce(s, &view, out);
	}
	bool ended = execution_has_ended(x);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		collect_stream(s, x, w, i, out);
	if ((!ended && !s->stops) || !is_all_read(s, &view, w))
		return false;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		put_carry(s, i, w->position[i], out);
	if (ended)
		put_exit(s, &view, out);
	return true;
}

void stream_finish(struct stream *s)
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		buf_finish(&s->carry[i]);
}
