/*
 * One connection: its phases, its bytes in and out, its deadlines and its end.
 *
 * Reading goes on while a request is being answered, so that the client's leaving is noticed. What
 * arrives then is kept for the next request, at most PIPELINE_MAX of it before reading pauses.
 * While a handler does not take the body that it asked for, nothing is read at all. A
 * FIN counts as leaving: a client that closes its side while its request is being worked on is gone
 * for us, as it is for nginx. Once the answer is complete a FIN is only a wish to close.
 *
 * The next request is looked at when the answer to the previous one has been taken by the kernel,
 * so a client that does not read cannot make us hold more than one answer.
 *
 * Callbacks of users (abort, proceed, stop) run from the loop only, never from inside a call that
 * the user made; so they need not expect to be re-entered.
 *
 * A connection that we end after an answer lingers: we send our FIN and go on reading for a bounded
 * time and amount. Closing at once with unread bytes would make the kernel send a reset, and the
 * client might never see the answer.
 */
#include "http/parsed.h"
#include "http/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "http/server.h"
#include "http/tls.h"

#define LINGER_MS 5000
#define LINGER_BYTES                                                                               \
	(1 << 30) /* the time is the effective limit: a client that sends too much should see the  \
		     error */
#define PIPELINE_MAX 65536
#define TURN_MAX     (1 << 20) /* read from one connection at one turn of the loop */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);
static void on_written(uv_write_t *write, int status);
static void on_closed(uv_handle_t *handle);
static enum http_sent plain_send(struct http_connection *c, uv_buf_t *bufs, unsigned count);
static void connection_await_write(struct http_connection *c);
static void take_share(struct http_connection *c, size_t len, bool more);
static void connection_receive(struct http_connection *c, const char *data, size_t len);
static void receive_eof(struct http_connection *c);
static size_t piece_size(const struct http_connection *c);
static void connection_take(struct http_connection *c, const char *data, size_t len);
static void connection_decode(struct http_connection *c);
static bool connection_has_sealed(const struct http_connection *c);
static void connection_resume(struct http_connection *c);
static void connection_expire(struct http_connection *c);
static void connection_parsed(struct http_connection *c);
static void process_kept(struct http_connection *c);
static void connection_cut(struct http_connection *c);
static void connection_end_by_reset(struct http_connection *c);
static size_t connection_kept(const struct http_connection *c);
static void forget_kept(struct http_connection *c);
static size_t connection_process(struct http_connection *c, const char *data, size_t len);
static size_t take_head(struct http_connection *c, const char *data, size_t len);
static void answer_error(struct http_connection *c, const struct error *e);
static void connection_linger(struct http_connection *c);
static bool connection_discards(const struct http_connection *c);
static void connection_discard(struct http_connection *c, size_t len);
static void update_reading(struct http_connection *c);
static bool wants_bytes(const struct http_connection *c);

struct http_connection *http_connection_open(struct http_server *server, int fd)
{
	struct http_connection *c = calloc(1, sizeof *c);
	if (!c) {
		close(fd);
		return NULL;
	}
	c->server = server;
	c->request.connection = c;
	c->tcp.data = c->timer.data = c->write.data = c;
	c->deadline = UINT64_MAX;
	c->resume = connection_resume;
	c->expire = connection_expire;
	c->parsed = connection_parsed;
	c->written = on_written;
	c->handles_open = 2;
	id_generate(c->id);
	uv_tcp_init(server->loop, &c->tcp);
	uv_timer_init(server->loop, &c->timer);
	http_request_begin(c);
	DL_APPEND(server->connections, c);
	server->counters.connections_open++;
	server->counters.connections_total++;
	if (uv_tcp_open(&c->tcp, fd) < 0) {
		close(fd);
		http_connection_close(c);
		return NULL;
	}
	http_set_deadline(c, server->limits.first_timeout_ms);
	update_reading(c);
	return c;
}

/* ---- bytes in ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)suggested;
	struct http_connection *c = handle->data;
	/*
	 * Bodies are consumed in place; bytes that may have to be kept are read in smaller pieces.
	 */
	if (c->server->tls && c->transport != HTTP_PLAIN)
		*buf = uv_buf_init(c->server->sealed_buffer, HTTP_SEALED_SIZE);
	else
		*buf = uv_buf_init(c->server->read_buffer, (unsigned)piece_size(c));
}

static size_t piece_size(const struct http_connection *c)
{
	return http_body_flows(c) || connection_discards(c) ? HTTP_READ_SIZE : PIPELINE_MAX;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_connection *c = stream->data;
	if (n > 0) {
		take_share(c, (size_t)n, (size_t)n == buf->len);
		connection_take(c, buf->base, (size_t)n);
	} else if (n == UV_EOF) {
		receive_eof(c);
	} else if (n < 0) {
		http_connection_lose(c);
	}
}

/* libuv reads on for as long as the socket fills the buffer; the others have a right to a turn. */
static void take_share(struct http_connection *c, size_t len, bool more)
{
	c->turn_bytes = more ? c->turn_bytes + len : 0;
	c->yielding = c->turn_bytes >= TURN_MAX;
	if (!c->yielding)
		return;
	c->turn_bytes = 0;
	http_wake(c);
}

static void connection_take(struct http_connection *c, const char *data, size_t len)
{
	struct error e;
	if (c->transport == HTTP_UNDECIDED)
		c->transport = http_secure_begin(c, data);
	if (c->transport == HTTP_PLAIN) {
		connection_receive(c, data, len);
	} else if (c->transport == HTTP_PLAIN_REFUSED) {
		error_set(&e, ERROR_INVALID_REQUEST, "this server speaks TLS: use https://");
		c->transport = HTTP_PLAIN; /* what else it sends is thrown away */
		http_connection_refuse(c, &e);
	} else if (http_secure_receive(c, data, len) < 0) {
		http_connection_lose(c);
	} else {
		connection_decode(c);
	}
}

/* Takes what TLS makes of the bytes that came, as far as it is wanted now. */
static void connection_decode(struct http_connection *c)
{
	char *out = c->server->read_buffer;
	ssize_t n = 1;
	while (n > 0 && c->phase != HTTP_PHASE_CLOSED && wants_bytes(c)) {
		n = http_secure_read(c, out, piece_size(c));
		if (n > 0) {
			connection_receive(c, out, (size_t)n);
		} else if (n == -ENODATA) {
			uv_read_stop((uv_stream_t *)&c->tcp);
			receive_eof(c);
		} else if (n < 0) {
			http_connection_lose(c);
		}
	}
	update_reading(c);
}

static void connection_receive(struct http_connection *c, const char *data, size_t len)
{
	if (connection_discards(c)) {
		connection_discard(c, len);
		update_reading(c);
		return;
	}
	if (connection_kept(c) == 0) {
		/* The usual case: whole requests are taken right from the read buffer. */
		size_t used = connection_process(c, data, len);
		buf_append(&c->in, data + used, len - used);
	} else {
		buf_append(&c->in, data, len);
		process_kept(c);
	}
	if (c->in.failed)
		http_connection_lose(c);
	update_reading(c);
}

static void receive_eof(struct http_connection *c)
{
	c->eof = true;
	c->reading = false;
	if (c->upgraded && c->phase == HTTP_PHASE_STREAMING) {
		c->body_state = HTTP_BODY_COMPLETE;
		http_body_settle(c);
	} else if (c->phase != HTTP_PHASE_FLUSHING) {
		http_connection_lose(c);
	}
}

static void connection_resume(struct http_connection *c)
{
	c->yielding = false;
	if (c->lost) {
		http_connection_lose(c);
	} else if (c->cut) {
		connection_cut(c);
	} else {
		if (c->phase == HTTP_PHASE_STREAMING)
			http_stream_proceed(c);
		process_kept(c);
		http_body_settle(c);
	}
	if (connection_has_sealed(c))
		connection_decode(c);
	update_reading(c);
}

/* Answers 401 if nothing has been answered. A handler that did not ask about aborts goes on. */
static void connection_cut(struct http_connection *c)
{
	struct http_request *req = &c->request;
	bool to_sink = http_body_has_listener(c);
	struct error e;
	c->cut = false;
	if (c->phase == HTTP_PHASE_STREAMING || c->phase == HTTP_PHASE_FLUSHING) {
		/* Without length and chunks nothing else tells the client that it was cut. */
		if (req->head.http10 && !c->sized)
			connection_end_by_reset(c);
		http_connection_lose(c);
		return;
	}
	if (c->phase == HTTP_PHASE_HANDLING && to_sink)
		req->sink.abort(req->sink.arg);
	else if (c->phase == HTTP_PHASE_HANDLING && req->aborted)
		req->aborted(req->aborted_arg);
	else if (c->phase != HTTP_PHASE_BODY)
		return;
	error_set(&e, ERROR_UNAUTHORIZED, "the API key was revoked, or its time is over");
	http_connection_refuse(c, &e);
}

static void process_kept(struct http_connection *c)
{
	if (connection_kept(c) > 0)
		c->in_used += connection_process(c, c->in.data + c->in_used, connection_kept(c));
	/* Idle connections are many, so they do not keep buffers that a burst has grown. */
	if (connection_kept(c) == 0)
		forget_kept(c);
	/* Moved when it halves, so that taking it in small pieces costs no more than its length. */
	if (c->in_used > c->in.len / 2) {
		buf_consume(&c->in, c->in_used);
		c->in_used = 0;
	}
}

static size_t connection_kept(const struct http_connection *c)
{
	return c->in.len - c->in_used;
}

static bool connection_has_sealed(const struct http_connection *c)
{
	return c->tls && http_tls_has_more(c->tls);
}

static void forget_kept(struct http_connection *c)
{
	buf_finish(&c->in);
	c->in_used = 0;
}

/* Consumes the bytes of requests that can proceed now. Returns how many; the rest is kept. */
static size_t connection_process(struct http_connection *c, const char *data, size_t len)
{
	size_t used = 0;
	c->processing = true;
	for (size_t n = 1; n > 0; used += n) {
		/* A body that is complete may have been all that the next request waited for. */
		http_body_settle(c);
		if (used < len && c->phase == HTTP_PHASE_HEAD)
			n = take_head(c, data + used, len - used);
		else if (used < len && http_body_flows(c))
			n = http_body_take(c, data + used, len - used);
		else
			n = 0;
	}
	c->processing = false;
	return c->phase < HTTP_PHASE_LINGERING ? used : len;
}

static size_t take_head(struct http_connection *c, const char *data, size_t len)
{
	struct http_request *req = &c->request;
	struct error e;
	bool first = c->scan.at == 0;
	int r = http_scan_head(&c->scan, data, len, &e);
	if (r == 0) {
		if (first)
			http_set_deadline(c, c->server->limits.head_timeout_ms);
		return 0;
	}
	size_t used = c->scan.at;
	c->scan = (struct http_head_scan){0};
	if (r > 0)
		r = http_request_parse(req, data, used, &e);
	if (r < 0) {
		http_connection_refuse(c, &e);
		return used;
	}
	r = http_request_route(req, &e);
	if (r == 0)
		http_body_begin(c);
	else if (req->head.chunked || req->head.content_length > 0)
		http_connection_refuse(c, &e);
	else
		answer_error(c, &e);
	return used;
}

void http_connection_take_body(struct http_connection *c)
{
	if (!http_parse_body(c)) {
		http_connection_handle(c);
		return;
	}
	c->phase = HTTP_PHASE_HANDLING;
	http_set_deadline(c, 0);
}

static void connection_parsed(struct http_connection *c)
{
	if (c->lost)
		http_connection_close(c);
	else if (c->phase == HTTP_PHASE_HANDLING)
		http_connection_handle(c);
}

void http_connection_handle(struct http_connection *c)
{
	c->phase = HTTP_PHASE_HANDLING;
	http_set_deadline(c, 0);
	c->request.route->handler(&c->request);
}

void http_connection_refuse(struct http_connection *c, const struct error *e)
{
	c->request.head.keep_alive = false;
	if (!c->request.started_us)
		c->request.started_us = clock_monotonic_us();
	answer_error(c, e);
}

static void answer_error(struct http_connection *c, const struct error *e)
{
	c->phase = HTTP_PHASE_HANDLING;
	http_set_deadline(c, 0);
	http_respond_error(&c->request, e);
}

static void update_reading(struct http_connection *c)
{
	bool wanted = wants_bytes(c);
	if (wanted == c->reading || c->phase == HTTP_PHASE_CLOSED)
		return;
	c->reading = wanted;
	if (wanted)
		uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
	else
		uv_read_stop((uv_stream_t *)&c->tcp);
}

/* Reading pauses while enough is kept or the body has no taker, and ends with a FIN. */
static bool wants_bytes(const struct http_connection *c)
{
	if (c->eof || c->lost || c->yielding)
		return false;
	if (connection_discards(c))
		return true;
	bool stalled = c->body_state == HTTP_BODY_COMING && !http_body_flows(c);
	return !stalled && connection_kept(c) < PIPELINE_MAX;
}

/* ---- bytes out ---- */

enum http_sent http_connection_send(struct http_connection *c, uv_buf_t *bufs, unsigned count)
{
	enum http_sent sent =
		c->tls ? http_secure_send(c, bufs, count) : plain_send(c, bufs, count);
	if (sent == HTTP_QUEUED)
		connection_await_write(c);
	return sent;
}

static enum http_sent plain_send(struct http_connection *c, uv_buf_t *bufs, unsigned count)
{
	uv_stream_t *stream = (uv_stream_t *)&c->tcp;
	int n = uv_try_write(stream, bufs, count);
	if (n < 0 && n != UV_EAGAIN)
		return HTTP_BROKEN;
	size_t sent = n < 0 ? 0 : (size_t)n;
	while (count > 0 && sent >= bufs->len) {
		sent -= bufs->len;
		bufs++;
		count--;
	}
	if (count == 0)
		return HTTP_SENT;
	bufs->base += sent;
	bufs->len -= sent;
	return uv_write(&c->write, stream, bufs, count, on_written) < 0 ? HTTP_BROKEN : HTTP_QUEUED;
}

static void connection_await_write(struct http_connection *c)
{
	c->writing = true;
	c->write_left = http_unread_by_client(c);
	http_set_deadline(c, c->server->limits.body_timeout_ms);
}

bool http_connection_put(struct http_connection *c, const char *data, size_t len)
{
	uv_buf_t bytes = uv_buf_init((char *)(uintptr_t)data, (unsigned)len);
	if (c->tls)
		return http_secure_put(c, data, len);
	return uv_try_write((uv_stream_t *)&c->tcp, &bytes, 1) == (int)len;
}

static void on_written(uv_write_t *write, int status)
{
	struct http_connection *c = write->data;
	c->writing = false;
	if (c->phase == HTTP_PHASE_CLOSED)
		return;
	http_set_deadline(c, 0);
	enum http_sent sent = status < 0 ? HTTP_BROKEN : c->tls ? http_secure_go_on(c) : HTTP_SENT;
	if (sent == HTTP_QUEUED)
		connection_await_write(c);
	else if (sent == HTTP_BROKEN)
		http_connection_lose(c);
	else if (c->phase == HTTP_PHASE_STREAMING)
		http_stream_written(c);
	else
		http_connection_answered(c);
}

void http_connection_answered(struct http_connection *c)
{
	bool more = c->request.head.keep_alive && !c->eof && !c->server->closing;
	http_request_end(&c->request);
	if (!more) {
		connection_linger(c);
		return;
	}
	c->phase = HTTP_PHASE_HEAD;
	http_request_begin(c);
	http_set_deadline(c, c->server->limits.idle_timeout_ms);
	if (!c->processing && (connection_kept(c) > 0 || connection_has_sealed(c)))
		http_wake(c);
}

/* ---- the end ---- */

static void connection_expire(struct http_connection *c)
{
	struct error e;
	bool answerable = c->phase == HTTP_PHASE_BODY || c->phase == HTTP_PHASE_HANDLING;
	error_set(&e, ERROR_REQUEST_TIMEOUT, "the request did not arrive in time");
	if (c->writing && http_client_reads(c))
		http_set_deadline(c, c->server->limits.body_timeout_ms);
	else if (answerable && c->body_state == HTTP_BODY_COMING)
		http_body_fail(c, &e);
	else if (c->phase == HTTP_PHASE_STREAMING && !c->writing)
		http_stream_quiet(c);
	else if (c->scan.at > 0)
		http_connection_refuse(c, &e);
	else
		http_connection_lose(c);
}

static void connection_linger(struct http_connection *c)
{
	uv_os_fd_t fd;
	if (c->tls)
		http_secure_end(c);
	if (c->eof || uv_fileno((uv_handle_t *)&c->tcp, &fd) < 0 || shutdown(fd, SHUT_WR) < 0) {
		http_connection_close(c);
		return;
	}
	c->phase = HTTP_PHASE_LINGERING;
	c->linger_left = LINGER_BYTES;
	http_set_deadline(c, LINGER_MS);
	if (!c->processing) {
		forget_kept(c);
		update_reading(c);
	}
}

/*
 * Returns whether input is discarded because the connection closes after the answer. It is read
 * nevertheless: a client that is still sending may not read before it is done.
 */
static bool connection_discards(const struct http_connection *c)
{
	return c->phase == HTTP_PHASE_LINGERING ||
	       (c->phase == HTTP_PHASE_FLUSHING && !c->request.head.keep_alive);
}

static void connection_discard(struct http_connection *c, size_t len)
{
	if (c->phase == HTTP_PHASE_FLUSHING)
		return;
	if (len >= c->linger_left)
		http_connection_close(c);
	else
		c->linger_left -= len;
}

void http_connection_lose(struct http_connection *c)
{
	struct http_request *req = &c->request;
	bool to_sink = http_body_has_listener(c);
	if (c->phase == HTTP_PHASE_HANDLING && !to_sink && !req->aborted) {
		/* The handler did not ask to be told: it will answer, and must find its request. */
		c->lost = true;
		update_reading(c);
		return;
	}
	enum http_phase phase = c->phase;
	http_connection_close(c);
	if (phase == HTTP_PHASE_HANDLING && to_sink)
		req->sink.abort(req->sink.arg);
	else if (phase == HTTP_PHASE_HANDLING)
		req->aborted(req->aborted_arg);
	else if (phase == HTTP_PHASE_STREAMING && !c->stream_ended)
		req->generator.stop(req->generator.arg);
}

void http_connection_close(struct http_connection *c)
{
	if (c->phase == HTTP_PHASE_CLOSED)
		return;
	c->phase = HTTP_PHASE_CLOSED;
	c->server->left(c);
	http_let_sleep(c);
	uv_close((uv_handle_t *)&c->tcp, on_closed);
	uv_close((uv_handle_t *)&c->timer, on_closed);
}

/* However it is closed from now on, the client sees a reset. */
static void connection_end_by_reset(struct http_connection *c)
{
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	uv_os_fd_t fd;
	if (uv_fileno((uv_handle_t *)&c->tcp, &fd) == 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void http_connection_reset(struct http_connection *c)
{
	connection_end_by_reset(c);
	http_connection_close(c);
}

static void on_closed(uv_handle_t *handle)
{
	struct http_connection *c = handle->data;
	if (--c->handles_open > 0)
		return;
	http_request_end(&c->request);
	http_parse_forget(c);
	buf_finish(&c->request.body);
	buf_finish(&c->request.fields);
	buf_finish(&c->in);
	buf_finish(&c->out_head);
	buf_finish(&c->sealed);
	http_tls_end(c->tls);
	c->server->forget(c);
	free(c);
}
