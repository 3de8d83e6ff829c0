/*
 * Answers that come piece by piece: in chunks, with their length announced, or, after an upgrade,
 * as they are.
 *
 * A stream keeps its head back until the first write, or until the generator has had its chance to
 * make one, so that a short stream costs no extra packet. `proceed` and `stop` are called from the
 * loop, never inside a call of the generator's.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "http/budget.h"
#include "http/connection.h"
#include "http/server.h"

static void http_stream_begin_stream(
	struct http_request *req, const struct http_generator *generator);
static void drop_chunk(struct http_connection *c);
static void flush_stream(struct http_connection *c);
static bool is_chunked(const struct http_connection *c);
static bool is_head_only(const struct http_connection *c);
static unsigned frame_chunk(struct http_connection *c, uv_buf_t bufs[3], uv_buf_t data);

void http_stream_begin(struct http_request *req, int status, const char *type,
	const struct http_generator *generator)
{
	http_put_head(req, status, type);
	if (!req->head.http10 && !http_has_no_body(status))
		http_put_field(&req->connection->out_head, "Transfer-Encoding", "chunked");
	http_stream_begin_stream(req, generator);
}

void http_stream_begin_sized(struct http_request *req, int status, const char *type,
	uint64_t length, const struct http_generator *generator)
{
	struct http_connection *c = req->connection;
	http_put_head(req, status, type);
	if (!http_has_no_body(status))
		http_put_length(&c->out_head, length);
	c->sized = true;
	c->stream_left = length;
	http_stream_begin_stream(req, generator);
}

void http_upgrade(struct http_request *req, const char *protocol, const struct http_body_sink *sink,
	const struct http_generator *generator)
{
	struct http_connection *c = req->connection;
	assert(c->body_state != HTTP_BODY_COMING);
	http_put_head(req, 101, NULL);
	http_put_field(&c->out_head, "Connection", "Upgrade");
	http_put_field(&c->out_head, "Upgrade", protocol);
	req->head.keep_alive = false;
	c->upgraded = true;
	http_body_begin_raw(c, sink);
	http_stream_begin_stream(req, generator);
}

static void http_stream_begin_stream(
	struct http_request *req, const struct http_generator *generator)
{
	struct http_connection *c = req->connection;
	assert(c->phase == HTTP_PHASE_HANDLING);
	buf_append(&c->out_head, "\r\n", 2);
	req->generator = *generator;
	c->head_unsent = true;
	c->lost |= c->out_head.failed;
	c->phase = HTTP_PHASE_STREAMING;
	http_set_deadline(c, 0);
	http_wake(c);
}

void http_stream_write(struct http_request *req, struct buf *data)
{
	struct http_connection *c = req->connection;
	autobuf chunk = buf_take(data);
	if (c->phase != HTTP_PHASE_STREAMING || c->lost)
		return;
	assert(!c->stream_ended && !c->out_body.data);
	c->asked = false;
	c->lost = chunk.failed;
	c->overfull = c->sized && chunk.len > c->stream_left;
	if (c->overfull)
		chunk.len = (size_t)c->stream_left;
	if (c->lost || chunk.len == 0 || is_head_only(c)) {
		http_wake(c);
		return;
	}
	c->stream_left -= c->sized ? chunk.len : 0;
	c->out_body = buf_take(&chunk);
	c->chunk_unsent = true;
	http_budget_hold_answer(c, c->out_body.len);
	flush_stream(c);
}

void http_stream_end(struct http_request *req)
{
	struct http_connection *c = req->connection;
	assert(c->phase >= HTTP_PHASE_STREAMING);
	if (c->phase != HTTP_PHASE_STREAMING)
		return;
	c->stream_ended = true;
	bool short_of = c->sized && c->stream_left > 0 && !is_head_only(c);
	if (c->lost || short_of)
		http_connection_close(c);
	else
		flush_stream(c);
}

void http_stream_abort(struct http_request *req)
{
	struct http_connection *c = req->connection;
	if (c->phase != HTTP_PHASE_STREAMING)
		return;
	c->stream_ended = true;
	/* Without length and chunks only a reset tells the client that this was not the end. */
	if (req->head.http10 && !c->sized)
		http_connection_reset(c);
	else
		http_connection_close(c);
}

void http_stream_proceed(struct http_connection *c)
{
	const struct http_generator *generator = &c->request.generator;
	if (c->writing || c->stream_ended)
		return;
	if (c->asked) {
		http_set_deadline(c, c->keepalive_ms);
		return;
	}
	if (is_head_only(c) || c->overfull) {
		/* The head is all that was asked for, or all that was announced has been sent. */
		c->stream_ended = true;
		generator->stop(generator->arg);
		flush_stream(c);
		return;
	}
	c->asked = true;
	generator->proceed(generator->arg);
	if (c->phase == HTTP_PHASE_STREAMING && c->head_unsent)
		flush_stream(c);
	if (c->phase == HTTP_PHASE_STREAMING && c->asked && !c->writing)
		http_set_deadline(c, c->keepalive_ms);
}

void http_stream_keepalive(struct http_request *req, const char *text, size_t len, uint64_t ms)
{
	struct http_connection *c = req->connection;
	assert(!c->sized && !c->upgraded);
	c->keepalive = text;
	c->keepalive_len = len;
	c->keepalive_ms = ms;
	http_wake(c);
}

void http_stream_quiet(struct http_connection *c)
{
	/* The generator was not asked, so it has just written. */
	if (!c->asked)
		return;
	uv_buf_t bufs[3];
	uv_buf_t text = uv_buf_init((char *)(uintptr_t)c->keepalive, (unsigned)c->keepalive_len);
	enum http_sent sent = http_connection_send(c, bufs, frame_chunk(c, bufs, text));
	c->lost = sent == HTTP_BROKEN;
	if (sent != HTTP_QUEUED)
		http_wake(c);
}

static void drop_chunk(struct http_connection *c)
{
	buf_finish(&c->out_body);
	http_budget_hold_answer(c, 0);
}

void http_stream_written(struct http_connection *c)
{
	if (!c->chunk_unsent)
		drop_chunk(c);
	if (c->chunk_unsent || c->stream_ended)
		flush_stream(c);
	else
		http_stream_proceed(c);
}

/* Hands over the pending parts: the head, a chunk, the end. */
static void flush_stream(struct http_connection *c)
{
	static char last_chunk[] = "0\r\n\r\n";
	uv_buf_t bufs[5];
	unsigned count = 0;
	if (c->writing)
		return;
	if (c->head_unsent)
		bufs[count++] = uv_buf_init(c->out_head.data, (unsigned)c->out_head.len);
	if (c->chunk_unsent)
		count += frame_chunk(
			c, bufs + count, uv_buf_init(c->out_body.data, (unsigned)c->out_body.len));
	if (c->stream_ended && is_chunked(c))
		bufs[count++] = uv_buf_init(last_chunk, sizeof last_chunk - 1);
	c->head_unsent = c->chunk_unsent = false;
	enum http_sent sent = count ? http_connection_send(c, bufs, count) : HTTP_SENT;
	if (c->stream_ended) {
		http_answer_sent(c, sent);
	} else if (sent != HTTP_QUEUED) {
		drop_chunk(c);
		c->lost = sent == HTTP_BROKEN;
		http_wake(c);
	}
}

static bool is_chunked(const struct http_connection *c)
{
	return !c->request.head.http10 && !is_head_only(c) && !c->sized && !c->upgraded;
}

static bool is_head_only(const struct http_connection *c)
{
	return c->request.head.method == HTTP_HEAD || http_has_no_body(c->request.status);
}

static unsigned frame_chunk(struct http_connection *c, uv_buf_t bufs[3], uv_buf_t data)
{
	if (!is_chunked(c)) {
		bufs[0] = data;
		return 1;
	}
	int len = snprintf(c->chunk_line, sizeof c->chunk_line, "%zx\r\n", data.len);
	bufs[0] = uv_buf_init(c->chunk_line, (unsigned)len);
	bufs[1] = data;
	/* The end of the size's line serves as the end of the data's. */
	bufs[2] = uv_buf_init(c->chunk_line + len - 2, 2);
	return 3;
}
