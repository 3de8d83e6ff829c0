/*
 * The request's body on its way in: framing, limit, and who takes it.
 *
 * It is collected before the handler runs, or the handler takes it as a stream. Then its pieces are
 * handed over where the socket left them, and what cannot be handed over is not read: at most one
 * read is kept while the sink is paused, so the client is slowed and nothing grows.
 *
 * Refused: bodies beyond the route's limit (by the announced length, or by the size of the chunk
 * that would pass it), malformed chunks, chunk extensions and trailers, and bodies that stall.
 */
#include <assert.h>

#include "http/budget.h"
#include "http/connection.h"
#include "http/server.h"

static void send_continue(struct http_connection *c);
static ptrdiff_t take_piece(struct http_connection *c, const char *data, size_t len,
	struct http_piece *piece, struct error *e);
static int check_limit(const struct http_connection *c, size_t len, struct error *e);
static int set_too_large(const struct http_connection *c, struct error *e);
static int hand_over(struct http_connection *c, const struct http_piece *piece, struct error *e);
static void call_sink(struct http_connection *c, const struct http_piece *piece);
static void watch_client(struct http_connection *c);
static bool is_being_answered(const struct http_connection *c);

void http_body_begin(struct http_connection *c)
{
	const struct http_head *head = &c->request.head;
	bool empty = !head->chunked && head->content_length == 0;
	struct error e;
	c->chunks = (struct http_chunks){0};
	c->body_left = head->content_length;
	c->body_taken = 0;
	if (head->content_length > INT64_MAX ||
		head->content_length > c->request.route->body_limit) {
		set_too_large(c, &e);
		http_connection_refuse(c, &e);
	} else if (c->request.route->streams_body) {
		c->body_state = empty ? HTTP_BODY_COMPLETE : HTTP_BODY_COMING;
		http_connection_handle(c);
	} else if (empty) {
		http_connection_handle(c);
	} else {
		c->phase = HTTP_PHASE_BODY;
		c->body_state = HTTP_BODY_COMING;
		watch_client(c);
		send_continue(c);
	}
}

static void send_continue(struct http_connection *c)
{
	static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	if (!c->request.head.expects_continue)
		return;
	/* A socket without room for 25 bytes belongs to a client that does not read. */
	if (!http_connection_put(c, interim, sizeof interim - 1)) {
		c->lost = true;
		http_wake(c);
	}
}

bool http_body_flows(const struct http_connection *c)
{
	if (c->body_state != HTTP_BODY_COMING)
		return false;
	return c->phase == HTTP_PHASE_BODY ||
	       (is_being_answered(c) && c->request.sink.data && !c->body_paused);
}

static bool is_being_answered(const struct http_connection *c)
{
	return c->phase == HTTP_PHASE_HANDLING || c->phase == HTTP_PHASE_STREAMING;
}

bool http_body_has_listener(const struct http_connection *c)
{
	return c->body_state != HTTP_BODY_TOLD && c->request.sink.data;
}

size_t http_body_take(struct http_connection *c, const char *data, size_t len)
{
	struct http_piece piece;
	struct error e;
	ptrdiff_t used = take_piece(c, data, len, &piece, &e);
	if (used < 0 || check_limit(c, piece.len, &e) < 0 || hand_over(c, &piece, &e) < 0) {
		http_body_fail(c, &e);
		return len;
	}
	size_t unread = c->body_unread;
	c->body_unread = 0;
	return (size_t)used - unread;
}

static ptrdiff_t take_piece(struct http_connection *c, const char *data, size_t len,
	struct http_piece *piece, struct error *e)
{
	if (c->request.head.chunked)
		return http_take_chunk(&c->chunks, data, len, piece, e);
	*piece = (struct http_piece){data, len < c->body_left ? len : (size_t)c->body_left};
	c->body_left -= piece->len;
	return (ptrdiff_t)piece->len;
}

/* A chunk that will pass the limit is refused by its size, before its bytes come. */
static int check_limit(const struct http_connection *c, size_t len, struct error *e)
{
	uint64_t room = c->request.route->body_limit - c->body_taken;
	if (c->upgraded || (len <= room && c->chunks.left <= room - len))
		return 0;
	return set_too_large(c, e);
}

static int set_too_large(const struct http_connection *c, struct error *e)
{
	return error_set(e, ERROR_BODY_TOO_LARGE, "the body may have at most %llu bytes here",
		(unsigned long long)c->request.route->body_limit);
}

static int hand_over(struct http_connection *c, const struct http_piece *piece, struct error *e)
{
	struct http_request *req = &c->request;
	bool complete = req->head.chunked ? c->chunks.state == HTTP_CHUNK_DONE : c->body_left == 0;
	c->body_taken += piece->len;
	if (complete)
		c->body_state = HTTP_BODY_COMPLETE;
	watch_client(c);
	if (!req->sink.data && http_budget_hold_body(c, req->body.len + piece->len, e) < 0)
		return -1;
	if (!req->sink.data)
		buf_append(&req->body, piece->data, piece->len);
	else if (piece->len > 0)
		call_sink(c, piece);
	if (req->body.failed)
		return error_set(e, ERROR_RESOURCE_EXHAUSTED, "there is no memory for the body");
	return 0;
}

static void call_sink(struct http_connection *c, const struct http_piece *piece)
{
	const struct http_body_sink *sink = &c->request.sink;
	c->piece_len = piece->len;
	sink->data(sink->arg, piece->data, piece->len);
	c->piece_len = 0;
}

void http_body_settle(struct http_connection *c)
{
	const struct http_body_sink *sink = &c->request.sink;
	if (c->body_state != HTTP_BODY_COMPLETE)
		return;
	if (c->phase == HTTP_PHASE_BODY) {
		c->body_state = HTTP_BODY_TOLD;
		http_connection_take_body(c);
	} else if (is_being_answered(c) && sink->data && !c->body_paused) {
		c->body_state = HTTP_BODY_TOLD;
		sink->end(sink->arg);
	}
}

/* The client has its time for the next byte whenever we wait for one, and for nothing else. */
static void watch_client(struct http_connection *c)
{
	/* Once an answer streams, the deadline is that of the client's reading. */
	if (c->phase != HTTP_PHASE_STREAMING)
		http_set_deadline(c, http_body_flows(c) ? c->server->limits.body_timeout_ms : 0);
}

void http_body_fail(struct http_connection *c, const struct error *e)
{
	struct http_request *req = &c->request;
	if (c->phase == HTTP_PHASE_STREAMING) {
		http_connection_lose(c);
		return;
	}
	if (c->phase == HTTP_PHASE_HANDLING)
		req->sink.abort(req->sink.arg);
	http_connection_refuse(c, e);
}

void http_body_begin_raw(struct http_connection *c, const struct http_body_sink *sink)
{
	c->request.sink = *sink;
	c->body_paused = false;
	c->body_state = HTTP_BODY_COMING;
	/* An upgraded connection has no length; this one cannot be reached. */
	c->body_left = UINT64_MAX;
}

/* ---- what handlers call ---- */

void http_body_stream(struct http_request *req, const struct http_body_sink *sink)
{
	struct http_connection *c = req->connection;
	assert(req->route->streams_body && !req->sink.data);
	req->sink = *sink;
	/* An interim answer has no place after the beginning of the true one. */
	if (c->body_state == HTTP_BODY_COMING && c->phase == HTTP_PHASE_HANDLING && !c->lost)
		send_continue(c);
	http_body_resume(req);
}

void http_body_pause(struct http_request *req)
{
	struct http_connection *c = req->connection;
	c->body_paused = true;
	if (is_being_answered(c))
		watch_client(c);
}

void http_body_resume(struct http_request *req)
{
	struct http_connection *c = req->connection;
	c->body_paused = false;
	if (!is_being_answered(c))
		return;
	watch_client(c);
	if (!c->processing)
		http_wake(c);
}

void http_body_unread(struct http_request *req, size_t n)
{
	struct http_connection *c = req->connection;
	/* Once the request is answered, the rest of this piece is body, not the next request. */
	if (n == 0 || !is_being_answered(c))
		return;
	assert(n <= c->piece_len - c->body_unread);
	c->body_unread += n;
	c->body_taken -= n;
	c->body_state = HTTP_BODY_COMING;
	if (req->head.chunked) {
		c->chunks.state = HTTP_CHUNK_DATA;
		c->chunks.left += n;
	} else {
		c->body_left += n;
	}
}
