/*
 * Answers: a head, then a body that is there, a stream of announced length, or one of chunks.
 *
 * An answer goes out in one system call when the socket takes it: head and body are handed over as
 * they are, without being copied together. Only what the socket does not take at once is queued.
 *
 * A stream keeps its head back until the first write, or until the generator has had its chance to
 * make one, so that a short stream costs no extra packet. `proceed` and `stop` are called from the
 * loop, never inside a call of the generator's.
 *
 * Nothing that a user passes can end a header line early: names and values are checked here.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "http/connection.h"
#include "http/json.h"
#include "http/server.h"

static struct buf take_buf(struct buf *b);
static bool take_turn(struct http_request *req);
static void put_error(struct buf *out, const struct error *e, const char *request_id);
static void put_head(struct http_request *req, int status, const char *type);
static void put_field(struct buf *out, const char *name, const char *value);
static void put_length(struct buf *out, uint64_t length);
static bool has_no_body(int status);
static const char *reason_of(int status);
static void finish(struct http_connection *c, enum http_sent sent);
static void begin_stream(struct http_request *req, const struct http_generator *generator);
static void flush_stream(struct http_connection *c);
static bool is_chunked(const struct http_connection *c);
static unsigned frame_chunk(struct http_connection *c, uv_buf_t bufs[3], bool chunked);

/* ---- answers of known length ---- */

void http_respond(struct http_request *req, int status, const char *type, struct buf *body)
{
	struct http_connection *c = req->connection;
	autobuf content = body ? take_buf(body) : (struct buf){0};
	if (!take_turn(req))
		return;
	if (content.failed) {
		log_error("answer does not fit into memory", "id", req->id);
		buf_finish(&content);
		status = 500;
	}
	put_head(req, status, has_no_body(status) ? NULL : type);
	if (!has_no_body(status)) {
		put_length(&c->out_head, content.len);
	}
	buf_append(&c->out_head, "\r\n", 2);
	bool bodied = content.len > 0 && req->head.method != HTTP_HEAD && !has_no_body(status);
	c->out_body = take_buf(&content);
	uv_buf_t bufs[] = {
		uv_buf_init(c->out_head.data, (unsigned)c->out_head.len),
		uv_buf_init(c->out_body.data, (unsigned)c->out_body.len),
	};
	finish(c, c->out_head.failed ? HTTP_BROKEN : http_connection_send(c, bufs, bodied ? 2 : 1));
}

static struct buf take_buf(struct buf *b)
{
	struct buf taken = *b;
	*b = (struct buf){0};
	return taken;
}

/* Whether there is somebody to answer. If not, the connection may go now. */
static bool take_turn(struct http_request *req)
{
	struct http_connection *c = req->connection;
	if (c->lost)
		http_connection_close(c);
	if (c->phase == HTTP_PHASE_CLOSED)
		return false;
	assert(c->phase == HTTP_PHASE_HANDLING);
	return true;
}

static void finish(struct http_connection *c, enum http_sent sent)
{
	if (sent == HTTP_QUEUED) {
		c->phase = HTTP_PHASE_FLUSHING;
		/* What is left of the body is read from here on, to be thrown away. */
		if (c->body_state == HTTP_BODY_COMING)
			http_server_wake(c);
	} else if (sent == HTTP_SENT) {
		http_connection_answered(c);
	} else {
		http_connection_close(c);
	}
}

void http_respond_error(struct http_request *req, const struct error *e)
{
	const struct http_mount *mount = req->mount;
	struct http_error_answer answer = {error_http_status(e->code), "application/json", {0}};
	bool internal = answer.status == 500;
	if (internal)
		log_error("request failed", "id", req->id, "code", error_name(e->code), "message",
			e->message);
	if (mount && mount->encode_error)
		mount->encode_error(req, e, &answer);
	else
		put_error(&answer.body, e, internal ? req->id : NULL);
	http_respond(req, answer.status, answer.type, &answer.body);
}

static void put_error(struct buf *out, const struct error *e, const char *request_id)
{
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	json_key(&w, "error");
	json_begin_object(&w);
	json_put_string(&w, "code", error_name(e->code));
	json_put_string(&w, "message", e->message);
	if (e->field[0])
		json_put_string(&w, "field", e->field);
	if (request_id)
		json_put_string(&w, "requestId", request_id);
	json_end_object(&w);
	json_end_object(&w);
}

/* ---- heads ---- */

static void put_head(struct http_request *req, int status, const char *type)
{
	struct http_connection *c = req->connection;
	struct http_server *s = c->server;
	struct buf *out = &c->out_head;
	char line[64];
	assert(status == 101 || (status >= 200 && status < 600));
	int len = snprintf(line, sizeof line, "HTTP/1.1 %d %s\r\n", status, reason_of(status));
	out->len = 0;
	buf_append(out, line, (size_t)len);
	if (type)
		put_field(out, "Content-Type", type);
	put_field(out, "X-Request-Id", req->id);
	/* Where the next request begins is known only after the whole body. */
	if (c->eof || s->closing || c->body_state == HTTP_BODY_COMING)
		req->head.keep_alive = false;
	if (!req->head.keep_alive && status != 101)
		put_field(out, "Connection", "close");
	buf_append(out, req->fields.data, req->fields.len);
	out->failed |= req->fields.failed;
	req->status = status;
	s->counters.requests_total++;
	s->counters.responses_by_class[status / 100]++;
}

void http_add_header(struct http_request *req, const char *name, const char *value)
{
	put_field(&req->fields, name, value);
}

static void put_field(struct buf *out, const char *name, const char *value)
{
	const char *p = value;
	while ((unsigned char)*p >= 0x20 && *p != 0x7f)
		p++;
	if (*p || !http_is_token(name, strlen(name))) {
		log_error("header left out", "name", name, "value", value);
		return;
	}
	buf_append_str(out, name);
	buf_append(out, ": ", 2);
	buf_append(out, value, (size_t)(p - value));
	buf_append(out, "\r\n", 2);
}

static void put_length(struct buf *out, uint64_t length)
{
	char value[24];
	snprintf(value, sizeof value, "%llu", (unsigned long long)length);
	put_field(out, "Content-Length", value);
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304;
}

static const char *reason_of(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{101, "Switching Protocols"},
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{206, "Partial Content"},
		{304, "Not Modified"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{402, "Payment Required"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{410, "Gone"},
		{412, "Precondition Failed"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{416, "Range Not Satisfiable"},
		{417, "Expectation Failed"},
		{422, "Unprocessable Content"},
		{425, "Too Early"},
		{426, "Upgrade Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{502, "Bad Gateway"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "";
}

/* ---- streams ---- */

void http_stream_begin(struct http_request *req, int status, const char *type,
	const struct http_generator *generator)
{
	put_head(req, status, type);
	if (!req->head.http10)
		put_field(&req->connection->out_head, "Transfer-Encoding", "chunked");
	begin_stream(req, generator);
}

void http_stream_begin_sized(struct http_request *req, int status, const char *type,
	uint64_t length, const struct http_generator *generator)
{
	struct http_connection *c = req->connection;
	put_head(req, status, type);
	put_length(&c->out_head, length);
	c->sized = true;
	c->stream_left = length;
	begin_stream(req, generator);
}

void http_upgrade(struct http_request *req, const char *protocol, const struct http_body_sink *sink,
	const struct http_generator *generator)
{
	struct http_connection *c = req->connection;
	assert(c->body_state != HTTP_BODY_COMING);
	put_head(req, 101, NULL);
	put_field(&c->out_head, "Connection", "Upgrade");
	put_field(&c->out_head, "Upgrade", protocol);
	req->head.keep_alive = false;
	c->upgraded = true;
	http_body_begin_raw(c, sink);
	begin_stream(req, generator);
}

static void begin_stream(struct http_request *req, const struct http_generator *generator)
{
	struct http_connection *c = req->connection;
	assert(c->phase == HTTP_PHASE_HANDLING);
	buf_append(&c->out_head, "\r\n", 2);
	req->generator = *generator;
	c->head_unsent = true;
	c->lost |= c->out_head.failed;
	c->phase = HTTP_PHASE_STREAMING;
	http_set_deadline(c, 0);
	http_server_wake(c);
}

void http_stream_write(struct http_request *req, struct buf *data)
{
	struct http_connection *c = req->connection;
	autobuf chunk = take_buf(data);
	if (c->phase != HTTP_PHASE_STREAMING || c->lost)
		return;
	assert(!c->stream_ended && !c->out_body.data);
	c->asked = false;
	c->lost = chunk.failed;
	c->overfull = c->sized && chunk.len > c->stream_left;
	if (c->overfull)
		chunk.len = (size_t)c->stream_left;
	if (c->lost || chunk.len == 0 || req->head.method == HTTP_HEAD) {
		http_server_wake(c);
		return;
	}
	c->stream_left -= c->sized ? chunk.len : 0;
	c->out_body = take_buf(&chunk);
	c->chunk_unsent = true;
	flush_stream(c);
}

void http_stream_end(struct http_request *req)
{
	struct http_connection *c = req->connection;
	if (c->phase != HTTP_PHASE_STREAMING)
		return;
	c->stream_ended = true;
	bool short_of = c->sized && c->stream_left > 0 && req->head.method != HTTP_HEAD;
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
	if (c->asked || c->writing || c->stream_ended)
		return;
	if (c->request.head.method == HTTP_HEAD || c->overfull) {
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
}

void http_stream_written(struct http_connection *c)
{
	if (!c->chunk_unsent)
		buf_finish(&c->out_body);
	if (c->chunk_unsent || c->stream_ended)
		flush_stream(c);
	else
		http_stream_proceed(c);
}

/* Hands over whatever is there: the head, a chunk, the end. */
static void flush_stream(struct http_connection *c)
{
	static char last_chunk[] = "0\r\n\r\n";
	bool chunked = is_chunked(c);
	uv_buf_t bufs[5];
	unsigned count = 0;
	if (c->writing)
		return;
	if (c->head_unsent)
		bufs[count++] = uv_buf_init(c->out_head.data, (unsigned)c->out_head.len);
	if (c->chunk_unsent)
		count += frame_chunk(c, bufs + count, chunked);
	if (c->stream_ended && chunked)
		bufs[count++] = uv_buf_init(last_chunk, sizeof last_chunk - 1);
	c->head_unsent = c->chunk_unsent = false;
	enum http_sent sent = count ? http_connection_send(c, bufs, count) : HTTP_SENT;
	if (c->stream_ended) {
		finish(c, sent);
	} else if (sent != HTTP_QUEUED) {
		buf_finish(&c->out_body);
		c->lost = sent == HTTP_BROKEN;
		http_server_wake(c);
	}
}

static bool is_chunked(const struct http_connection *c)
{
	const struct http_head *head = &c->request.head;
	return !head->http10 && head->method != HTTP_HEAD && !c->sized && !c->upgraded;
}

static unsigned frame_chunk(struct http_connection *c, uv_buf_t bufs[3], bool chunked)
{
	uv_buf_t data = uv_buf_init(c->out_body.data, (unsigned)c->out_body.len);
	if (!chunked) {
		bufs[0] = data;
		return 1;
	}
	int len = snprintf(c->chunk_line, sizeof c->chunk_line, "%zx\r\n", c->out_body.len);
	bufs[0] = uv_buf_init(c->chunk_line, (unsigned)len);
	bufs[1] = data;
	/* The end of the size's line serves as the end of the data's. */
	bufs[2] = uv_buf_init(c->chunk_line + len - 2, 2);
	return 3;
}
