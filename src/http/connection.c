/*
 * One connection: its phases, its bytes in and out, its deadlines and its end.
 *
 * Reading goes on while a request is being answered, so that the client's leaving is noticed. What
 * arrives then is kept for the next request, at most PIPELINE_MAX of it before reading pauses. A
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
#include "http/connection.h"

#include <linux/sockios.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/clock.h"
#include "http/server.h"

#define NO_DEADLINE  UINT64_MAX
#define LINGER_MS    5000
#define LINGER_BYTES (40 << 20) /* more than the largest body: who sends one too large sees why */
#define PIPELINE_MAX 65536

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);
static void on_timer(uv_timer_t *timer);
static void on_written(uv_write_t *write, int status);
static void on_closed(uv_handle_t *handle);
static void receive(struct http_connection *c, const char *data, size_t len);
static void receive_eof(struct http_connection *c);
static void process_kept(struct http_connection *c);
static size_t process(struct http_connection *c, const char *data, size_t len);
static size_t take_head(struct http_connection *c, const char *data, size_t len);
static void begin_body(struct http_connection *c);
static size_t take_body(struct http_connection *c, const char *data, size_t len);
static ptrdiff_t take_piece(struct http_connection *c, const char *data, size_t len,
	struct http_piece *piece, struct error *e);
static void refuse_body(struct http_connection *c);
static void handle(struct http_connection *c);
static void answer_error(struct http_connection *c, const struct error *e);
static void linger(struct http_connection *c);
static void drain(struct http_connection *c, size_t len);
static void update_reading(struct http_connection *c);
static void set_deadline(struct http_connection *c, uint64_t ms);
static void arm_timer(struct http_connection *c);
static void expire(struct http_connection *c);
static bool client_reads(struct http_connection *c);
static size_t unread_by_client(const struct http_connection *c);

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
	c->deadline = NO_DEADLINE;
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
	/* Without delay for small answers; with probes, so that a vanished client is noticed. */
	uv_tcp_nodelay(&c->tcp, 1);
	uv_tcp_keepalive(&c->tcp, 1, 60);
	set_deadline(c, server->limits.idle_timeout_ms);
	update_reading(c);
	return c;
}

/* ---- bytes in ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
	(void)suggested;
	struct http_connection *c = handle->data;
	*buf = uv_buf_init(c->server->read_buffer, HTTP_READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct http_connection *c = stream->data;
	if (n > 0)
		receive(c, buf->base, (size_t)n);
	else if (n == UV_EOF)
		receive_eof(c);
	else if (n < 0)
		http_connection_lose(c);
}

static void receive(struct http_connection *c, const char *data, size_t len)
{
	if (c->phase == HTTP_PHASE_LINGERING) {
		drain(c, len);
		return;
	}
	if (c->in.len == 0) {
		/* The usual case: whole requests are taken right from the read buffer. */
		size_t used = process(c, data, len);
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
	if (c->phase != HTTP_PHASE_FLUSHING)
		http_connection_lose(c);
}

void http_connection_resume(struct http_connection *c)
{
	if (c->lost)
		http_connection_lose(c);
	else if (c->phase == HTTP_PHASE_STREAMING)
		http_stream_proceed(c);
	else
		process_kept(c);
	update_reading(c);
}

static void process_kept(struct http_connection *c)
{
	if (c->in.len > 0)
		buf_consume(&c->in, process(c, c->in.data, c->in.len));
	/* Waiting connections are many; what a burst has made them hold goes back. */
	if (c->in.len == 0)
		buf_finish(&c->in);
}

/* Takes what belongs to requests that can be taken now; the rest waits. */
static size_t process(struct http_connection *c, const char *data, size_t len)
{
	size_t used = 0;
	c->processing = true;
	while (used < len && (c->phase == HTTP_PHASE_HEAD || c->phase == HTTP_PHASE_BODY)) {
		size_t n = c->phase == HTTP_PHASE_HEAD ? take_head(c, data + used, len - used)
						       : take_body(c, data + used, len - used);
		if (n == 0)
			break;
		used += n;
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
			set_deadline(c, c->server->limits.head_timeout_ms);
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
		begin_body(c);
	else if (req->head.chunked || req->head.content_length > 0)
		http_connection_refuse(c, &e);
	else
		answer_error(c, &e);
	return used;
}

static void begin_body(struct http_connection *c)
{
	static char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const struct http_head *head = &c->request.head;
	if (head->content_length > c->request.route->body_limit) {
		refuse_body(c);
		return;
	}
	if (!head->chunked && head->content_length == 0) {
		handle(c);
		return;
	}
	c->phase = HTTP_PHASE_BODY;
	c->chunks = (struct http_chunks){0};
	c->body_left = head->content_length;
	set_deadline(c, c->server->limits.body_timeout_ms);
	uv_buf_t buf = uv_buf_init(interim, sizeof interim - 1);
	/* Whoever has no room for 25 bytes does not read his answers. */
	if (head->expects_continue && uv_try_write((uv_stream_t *)&c->tcp, &buf, 1) != (int)buf.len)
		http_connection_close(c);
}

static size_t take_body(struct http_connection *c, const char *data, size_t len)
{
	struct http_request *req = &c->request;
	struct http_piece piece;
	struct error e;
	ptrdiff_t used = take_piece(c, data, len, &piece, &e);
	if (used < 0) {
		http_connection_refuse(c, &e);
		return len;
	}
	/* A chunk that will pass the limit is refused by its size, before its bytes come. */
	if (req->body.len + piece.len + c->chunks.left > req->route->body_limit) {
		refuse_body(c);
		return len;
	}
	buf_append(&req->body, piece.data, piece.len);
	if (req->body.failed) {
		error_set(&e, ERROR_RESOURCE_EXHAUSTED, "there is no memory for the body");
		http_connection_refuse(c, &e);
		return len;
	}
	if (req->head.chunked ? c->chunks.state == HTTP_CHUNK_DONE : c->body_left == 0)
		handle(c);
	else
		set_deadline(c, c->server->limits.body_timeout_ms);
	return (size_t)used;
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

static void refuse_body(struct http_connection *c)
{
	struct error e;
	error_set(&e, ERROR_BODY_TOO_LARGE, "the body may have at most %llu bytes here",
		(unsigned long long)c->request.route->body_limit);
	http_connection_refuse(c, &e);
}

static void handle(struct http_connection *c)
{
	c->phase = HTTP_PHASE_HANDLING;
	set_deadline(c, 0);
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
	set_deadline(c, 0);
	http_respond_error(&c->request, e);
}

/* Reading pauses while enough is kept for later, and ends with the connection. */
static void update_reading(struct http_connection *c)
{
	bool wanted =
		c->phase != HTTP_PHASE_CLOSED && !c->eof && !c->lost && c->in.len < PIPELINE_MAX;
	if (wanted == c->reading || c->phase == HTTP_PHASE_CLOSED)
		return;
	c->reading = wanted;
	if (wanted)
		uv_read_start((uv_stream_t *)&c->tcp, on_alloc, on_read);
	else
		uv_read_stop((uv_stream_t *)&c->tcp);
}

/* ---- bytes out ---- */

enum http_sent http_connection_send(struct http_connection *c, uv_buf_t *bufs, unsigned count)
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
	if (uv_write(&c->write, stream, bufs, count, on_written) < 0)
		return HTTP_BROKEN;
	c->writing = true;
	c->write_left = unread_by_client(c);
	set_deadline(c, c->server->limits.body_timeout_ms);
	return HTTP_QUEUED;
}

static void on_written(uv_write_t *write, int status)
{
	struct http_connection *c = write->data;
	c->writing = false;
	if (c->phase == HTTP_PHASE_CLOSED)
		return;
	set_deadline(c, 0);
	if (status < 0)
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
		linger(c);
		return;
	}
	c->phase = HTTP_PHASE_HEAD;
	http_request_begin(c);
	set_deadline(c, c->server->limits.idle_timeout_ms);
	if (!c->processing && c->in.len > 0)
		http_server_wake(c);
}

/* ---- the end ---- */

static void linger(struct http_connection *c)
{
	uv_os_fd_t fd;
	if (c->eof || uv_fileno((uv_handle_t *)&c->tcp, &fd) < 0 || shutdown(fd, SHUT_WR) < 0) {
		http_connection_close(c);
		return;
	}
	c->phase = HTTP_PHASE_LINGERING;
	c->linger_left = LINGER_BYTES;
	set_deadline(c, LINGER_MS);
	if (!c->processing) {
		c->in.len = 0;
		update_reading(c);
	}
}

static void drain(struct http_connection *c, size_t len)
{
	if (len >= c->linger_left)
		http_connection_close(c);
	else
		c->linger_left -= len;
}

void http_connection_lose(struct http_connection *c)
{
	struct http_request *req = &c->request;
	if (c->phase == HTTP_PHASE_HANDLING && !req->aborted) {
		/* The handler did not ask to be told: it will answer, and must find its request. */
		c->lost = true;
		update_reading(c);
		return;
	}
	enum http_phase phase = c->phase;
	http_connection_close(c);
	if (phase == HTTP_PHASE_HANDLING)
		req->aborted(req->aborted_arg);
	else if (phase == HTTP_PHASE_STREAMING && !c->stream_ended)
		req->generator.stop(req->generator.arg);
}

void http_connection_close(struct http_connection *c)
{
	if (c->phase == HTTP_PHASE_CLOSED)
		return;
	c->phase = HTTP_PHASE_CLOSED;
	http_server_let_sleep(c);
	uv_close((uv_handle_t *)&c->tcp, on_closed);
	uv_close((uv_handle_t *)&c->timer, on_closed);
}

void http_connection_reset(struct http_connection *c)
{
	const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
	uv_os_fd_t fd;
	if (uv_fileno((uv_handle_t *)&c->tcp, &fd) == 0)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	http_connection_close(c);
}

static void on_closed(uv_handle_t *handle)
{
	struct http_connection *c = handle->data;
	if (--c->handles_open > 0)
		return;
	http_request_end(&c->request);
	buf_finish(&c->request.body);
	buf_finish(&c->request.fields);
	buf_finish(&c->in);
	buf_finish(&c->out_head);
	http_server_forget(c);
	free(c);
}

/* ---- deadlines ---- */

/*
 * Deadlines move with every request, while timers are costly to move. So the timer is left alone
 * when a deadline moves away: it fires too early, finds nothing to do and is set again.
 */
static void set_deadline(struct http_connection *c, uint64_t ms)
{
	c->deadline = ms ? uv_now(c->server->loop) + ms : NO_DEADLINE;
	arm_timer(c);
}

static void arm_timer(struct http_connection *c)
{
	bool active = uv_is_active((uv_handle_t *)&c->timer);
	if (c->deadline == NO_DEADLINE || (active && c->timer_due <= c->deadline))
		return;
	uint64_t now = uv_now(c->server->loop);
	c->timer_due = c->deadline;
	/* Fails only when the connection is closed, and then nothing waits any more. */
	uv_timer_start(&c->timer, on_timer, c->deadline > now ? c->deadline - now : 0, 0);
}

static void on_timer(uv_timer_t *timer)
{
	struct http_connection *c = timer->data;
	if (c->deadline <= uv_now(c->server->loop))
		expire(c);
	arm_timer(c);
}

static void expire(struct http_connection *c)
{
	struct error e;
	c->deadline = NO_DEADLINE;
	if (c->writing && client_reads(c)) {
		set_deadline(c, c->server->limits.body_timeout_ms);
	} else if (c->phase == HTTP_PHASE_BODY || c->scan.at > 0) {
		error_set(&e, ERROR_REQUEST_TIMEOUT, "the request did not arrive in time");
		http_connection_refuse(c, &e);
	} else {
		http_connection_lose(c);
	}
}

/* Whether the client has taken anything since we last looked. */
static bool client_reads(struct http_connection *c)
{
	size_t before = c->write_left;
	c->write_left = unread_by_client(c);
	return c->write_left < before;
}

/*
 * How much of what we wrote has not reached the client. The kernel's share counts: it takes
 * megabytes at a time, so that our own queue may stand still for long while a slow client reads all
 * the time.
 */
static size_t unread_by_client(const struct http_connection *c)
{
	uv_os_fd_t fd;
	int kernel = 0;
	if (uv_fileno((const uv_handle_t *)&c->tcp, &fd) == 0)
		ioctl(fd, SIOCOUTQ, &kernel);
	return uv_stream_get_write_queue_size((const uv_stream_t *)&c->tcp) + (size_t)kernel;
}
