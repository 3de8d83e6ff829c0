#include "http/pass.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "http/connection.h"
#include "http/server.h"

#define ANSWER_MS (10 * 60 * 1000) /* from the request until the head of the answer */
#define PIECE     (256u * 1024)    /* read at once from the other server */

/* Fields of one hop, which are not passed on, in either direction. */
static const char *const hop_fields[] = {"Connection", "Keep-Alive", "Proxy-Authenticate",
	"Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
	"Content-Length", "Expect"};

enum pass_state {
	PASS_WAITING, /* for the head of the answer */
	PASS_ANSWERING,
	PASS_CLOSED
};

struct http_pass {
	struct http_request *req;
	struct http_pass_form form;
	uv_tcp_t *tcp;
	uv_timer_t timer;
	unsigned handles_open;
	enum pass_state state;

	struct buf out;    /* to be sent next */
	struct buf flying; /* being sent */
	uv_write_t write;
	uv_shutdown_t shutdown;
	bool writing;
	bool deaf;        /* the other server takes nothing more; the rest is dropped */
	bool ends;        /* the client has sent all: a FIN follows what is in `out` */
	bool body_paused; /* until `out` is sent */

	struct http_head_scan scan;
	struct buf in;  /* read and not handed on */
	bool heard;     /* a byte has come */
	bool excessive; /* more has come than belongs to the answer */
	bool complete;  /* all of the answer has come */
	char *head_text;
	struct http_head head;
	bool raw; /* after an upgrade */
	bool sized;
	uint64_t left;
	struct http_chunks chunks;
	bool hungry; /* the client takes more */
	bool eof;    /* the other server has sent all */
};

static void pass_read(struct http_pass *p);
static void pass_flush(struct http_pass *p);

/* ---- what may be repeated, and what may follow ---- */

/* Returns whether there is neither a body nor an upgrade. */
static bool request_is_bare(const struct http_request *req)
{
	return !req->head.chunked && req->head.content_length == 0 && !http_header(req, "Upgrade");
}

bool http_pass_can_repeat(const struct http_request *req)
{
	const struct http_head *head = &req->head;
	bool is_safe =
		head->method_known && (head->method == HTTP_GET || head->method == HTTP_HEAD ||
					      head->method == HTTP_OPTIONS);
	return is_safe && request_is_bare(req);
}

/* ---- the end ---- */

static void pass_free(struct http_pass *p)
{
	if (--p->handles_open > 0)
		return;
	buf_finish(&p->in);
	buf_finish(&p->out);
	buf_finish(&p->flying);
	free(p->head_text);
	free(p);
}

static void pass_timer_closed(uv_handle_t *timer)
{
	pass_free(timer->data);
}

static void pass_tcp_closed(uv_handle_t *tcp)
{
	pass_free(tcp->data);
	free(tcp);
}

static bool pass_leaves_stream(const struct http_pass *p)
{
	bool framed = p->sized || p->head.chunked;
	bool quiet = !p->writing && !p->deaf && p->out.len == 0 && p->in.len == 0;
	return p->complete && framed && quiet && !p->raw && !p->eof && !p->excessive &&
	       p->head.keep_alive && request_is_bare(p->req);
}

static void pass_close_handles(struct http_pass *p, bool with_stream)
{
	p->state = PASS_CLOSED;
	if (with_stream)
		uv_close((uv_handle_t *)p->tcp, pass_tcp_closed);
	else
		p->handles_open--;
	uv_close((uv_handle_t *)&p->timer, pass_timer_closed);
}

static void pass_close(struct http_pass *p)
{
	if (p->state == PASS_CLOSED)
		return;
	pass_close_handles(p, true);
	p->form.ended(p->form.arg, NULL);
}

/* The stream stays, for whoever has the next request. */
static void pass_leave(struct http_pass *p)
{
	uv_read_stop((uv_stream_t *)p->tcp);
	p->tcp->data = NULL;
	pass_close_handles(p, false);
	p->form.ended(p->form.arg, p->tcp);
}

static void pass_is_stale(struct http_pass *p)
{
	pass_close_handles(p, true);
	p->form.stale(p->form.arg);
}

/* The client is gone. */
static void pass_left(void *arg)
{
	pass_close(arg);
}

static void pass_fail(struct http_pass *p, const char *why)
{
	struct http_request *req = p->req;
	bool answering = p->state == PASS_ANSWERING;
	struct error e;
	error_set(&e, ERROR_BAD_GATEWAY, "%s", why);
	pass_close(p);
	if (answering)
		http_stream_abort(req);
	else
		http_respond_error(req, &e);
}

/* The client has its end before the other side has ours. */
static void pass_finish(struct http_pass *p)
{
	bool leaves = pass_leaves_stream(p);
	http_stream_end(p->req);
	if (leaves)
		pass_leave(p);
	else
		pass_close(p);
}

/* ---- heads ---- */

static bool is_listed(const struct http_head *head, const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(hop_fields); i++)
		if (strcasecmp(hop_fields[i], name) == 0)
			return true;
	return http_head_has_token(head, "Connection", name);
}

static void put_request_fields(const struct http_pass *p, struct buf *out)
{
	const struct http_head *head = &p->req->head;
	for (size_t i = 0; i < head->field_count; i++) {
		const char *name = head->fields[i].name, *value = head->fields[i].value;
		if (is_listed(head, name) || strcasecmp(name, "Host") == 0)
			continue;
		if (!p->form.request_field || p->form.request_field(p->form.arg, name, &value))
			http_put_field(out, name, value);
	}
}

static void put_request_framing(const struct http_pass *p, struct buf *out)
{
	const char *upgrade = http_header(p->req, "Upgrade");
	if (upgrade && http_wants_upgrade(p->req, upgrade)) {
		http_put_field(out, "Connection", "Upgrade");
		http_put_field(out, "Upgrade", upgrade);
		return;
	}
	if (!request_is_bare(p->req))
		http_put_field(out, "Connection", "close");
	if (p->req->head.chunked)
		http_put_field(out, "Transfer-Encoding", "chunked");
	else if (http_header(p->req, "Content-Length"))
		http_put_length(out, p->req->head.content_length);
}

static void put_request(const struct http_pass *p, struct buf *out)
{
	buf_append_str(out, p->req->head.method_text);
	buf_append_str(out, " ");
	buf_append_str(out, p->form.target);
	buf_append_str(out, " HTTP/1.1\r\n");
	http_put_field(out, "Host", p->form.host);
	put_request_fields(p, out);
	put_request_framing(p, out);
	buf_append_str(out, "\r\n");
}

static void add_answer_fields(const struct http_pass *p)
{
	for (size_t i = 0; i < p->head.field_count; i++) {
		const char *name = p->head.fields[i].name, *value = p->head.fields[i].value;
		if (is_listed(&p->head, name))
			continue;
		if (!p->form.answer_field || p->form.answer_field(p->form.arg, name, &value))
			http_add_header(p->req, name, value);
	}
}

/* ---- to the other server ---- */

static void pass_traffic(const struct http_pass *p)
{
	if (p->form.traffic)
		p->form.traffic(p->form.arg);
}

static void pass_answered(const struct http_pass *p)
{
	if (p->form.answered)
		p->form.answered(p->form.arg);
}

/* What it has answered by now is still passed on. */
static void pass_is_not_heard(struct http_pass *p)
{
	p->deaf = true;
	buf_finish(&p->out);
}

static void pass_written(uv_write_t *write, int status)
{
	struct http_pass *p = write->data;
	p->writing = false;
	buf_finish(&p->flying);
	if (p->state == PASS_CLOSED)
		return;
	if (status < 0)
		pass_is_not_heard(p);
	pass_flush(p);
}

static void pass_flush(struct http_pass *p)
{
	uv_stream_t *stream = (uv_stream_t *)p->tcp;
	if (p->writing)
		return;
	if (p->out.len > 0) {
		uv_buf_t bytes = uv_buf_init(p->out.data, (unsigned)p->out.len);
		int n = uv_try_write(stream, &bytes, 1);
		if (n > 0)
			buf_consume(&p->out, (size_t)n);
		else if (n != UV_EAGAIN)
			pass_is_not_heard(p);
	}
	if (p->out.len > 0) {
		p->flying = buf_take(&p->out);
		uv_buf_t bytes = uv_buf_init(p->flying.data, (unsigned)p->flying.len);
		p->writing = uv_write(&p->write, stream, &bytes, 1, pass_written) == 0;
		return;
	}
	if (p->body_paused) {
		p->body_paused = false;
		http_body_resume(p->req);
	}
	if (p->ends && p->raw && !p->deaf) {
		p->deaf = true;
		uv_shutdown(&p->shutdown, stream, NULL);
	}
}

static void pass_body_data(void *arg, const char *data, size_t len)
{
	struct http_pass *p = arg;
	char size[24];
	pass_traffic(p);
	if (p->deaf)
		return;
	bool chunked = p->req->head.chunked && !p->raw;
	if (chunked)
		buf_append(&p->out, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", len));
	buf_append(&p->out, data, len);
	if (chunked)
		buf_append(&p->out, "\r\n", 2);
	pass_flush(p);
	if (p->writing && !p->body_paused) {
		p->body_paused = true;
		http_body_pause(p->req);
	}
}

static void pass_body_end(void *arg)
{
	struct http_pass *p = arg;
	p->ends = true;
	if (p->req->head.chunked && !p->raw && !p->deaf)
		buf_append_str(&p->out, "0\r\n\r\n");
	pass_flush(p);
}

/* ---- from the other server ---- */

/* Takes as much of `in` as belongs to the answer. Returns false when it is malformed. */
static bool take_answer(struct http_pass *p, struct buf *out)
{
	struct http_piece piece;
	struct error e;
	size_t used = 0;
	if (!p->head.chunked || p->raw) {
		p->excessive = p->sized && p->in.len > p->left;
		size_t n = p->excessive ? (size_t)p->left : p->in.len;
		p->left -= p->sized ? n : 0;
		p->complete = p->sized ? p->left == 0 : p->eof;
		p->in.len = n;
		*out = buf_take(&p->in);
		return !p->eof || !p->sized || p->complete;
	}
	while (used < p->in.len && p->chunks.state != HTTP_CHUNK_DONE) {
		ptrdiff_t n = http_take_chunk(
			&p->chunks, p->in.data + used, p->in.len - used, &piece, &e);
		if (n < 0)
			return false;
		buf_append(out, piece.data, piece.len);
		used += (size_t)n;
	}
	buf_consume(&p->in, used);
	p->complete = p->chunks.state == HTTP_CHUNK_DONE;
	return p->complete || !p->eof;
}

/* The client takes more: gives it what has come, or reads on. */
static void pass_proceed(void *arg)
{
	struct http_pass *p = arg;
	struct http_request *req = p->req;
	autobuf out = {0};
	p->hungry = true;
	bool well = take_answer(p, &out);
	if (well && out.len > 0) {
		p->hungry = false;
		pass_traffic(p);
		http_stream_write(req, &out);
	}
	if (!well)
		pass_fail(p, "the answer is cut short");
	else if (p->complete)
		pass_finish(p);
	else
		pass_read(p);
}

static void begin_body(struct http_pass *p, int status)
{
	const struct http_generator generator = {pass_proceed, pass_left, p};
	p->sized = http_head_has_length(&p->head) || http_has_no_body(status);
	p->left = http_has_no_body(status) ? 0 : p->head.content_length;
	if (p->sized)
		http_stream_begin_sized(p->req, status, NULL, p->left, &generator);
	else
		http_stream_begin(p->req, status, NULL, &generator);
}

static void begin_raw(struct http_pass *p, const char *protocol)
{
	p->raw = true;
	p->ends = false;
	http_upgrade(p->req, protocol,
		&(struct http_body_sink){pass_body_data, pass_body_end, pass_left, p},
		&(struct http_generator){pass_proceed, pass_left, p});
}

/* Returns false if it was an interim answer, and another head follows. */
static bool begin_answer(struct http_pass *p, int status)
{
	const char *protocol = http_head_field(&p->head, "Upgrade");
	if (status == 101 && protocol && http_wants_upgrade(p->req, protocol)) {
		p->state = PASS_ANSWERING;
		pass_answered(p);
		add_answer_fields(p);
		begin_raw(p, protocol);
		return true;
	}
	if (status == 101 || status > 599) {
		pass_fail(p, "the answer has a status that was not asked for");
		return true;
	}
	if (status < 200)
		return false;
	p->state = PASS_ANSWERING;
	pass_answered(p);
	add_answer_fields(p);
	begin_body(p, status);
	return true;
}

/* Looks for heads in `in`: interim ones, then that of the answer. */
static void pass_take_heads(struct http_pass *p)
{
	struct error e;
	while (p->state == PASS_WAITING) {
		int status = 0;
		int r = http_scan_head(&p->scan, p->in.data, p->in.len, &e);
		if (r == 0 && p->eof)
			r = -1;
		if (r == 0)
			return;
		if (r > 0) {
			size_t len = p->scan.at;
			free(p->head_text);
			p->head_text = mem_copy(p->in.data, len);
			r = http_parse_answer(p->head_text, len, &p->head, &status, &e);
			buf_consume(&p->in, len);
			p->scan = (struct http_head_scan){0};
		}
		if (r < 0)
			pass_fail(p, "what listens on the port does not answer in HTTP/1.1");
		else if (begin_answer(p, status))
			uv_timer_stop(&p->timer);
	}
}

static void pass_give_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *bytes)
{
	struct http_pass *p = handle->data;
	(void)suggested;
	bool room = buf_reserve(&p->in, PIECE);
	*bytes = uv_buf_init(room ? p->in.data + p->in.len : NULL, room ? PIECE : 0);
}

static void pass_ready(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
	struct http_pass *p = stream->data;
	(void)bytes;
	if (n == 0 || p->state == PASS_CLOSED)
		return;
	p->heard |= n > 0;
	if (n < 0 && p->form.spare && !p->heard) {
		pass_is_stale(p);
		return;
	}
	/* A reset is no end, whatever the length. */
	if (n < 0 && n != UV_EOF) {
		pass_fail(p, "the connection inside the sandbox was lost");
		return;
	}
	p->eof = n < 0;
	p->in.len += n > 0 ? (size_t)n : 0;
	if (p->state == PASS_WAITING) {
		pass_take_heads(p);
		if (p->state == PASS_ANSWERING)
			uv_read_stop(stream);
	} else {
		uv_read_stop(stream);
		if (p->hungry)
			pass_proceed(p);
	}
}

static void pass_read(struct http_pass *p)
{
	if (!p->eof)
		uv_read_start((uv_stream_t *)p->tcp, pass_give_buffer, pass_ready);
}

static void pass_is_late(uv_timer_t *timer)
{
	pass_fail(timer->data, "what listens on the port has not answered in time");
}

/* ---- the begin ---- */

void http_pass(struct http_request *req, uv_tcp_t *stream, const struct http_pass_form *form)
{
	struct http_pass *p = mem_new(sizeof *p);
	p->req = req;
	p->form = *form;
	p->tcp = stream;
	stream->data = p->timer.data = p->write.data = p;
	p->handles_open = 2;
	uv_timer_init(req->connection->server->loop, &p->timer);
	http_on_abort(req, pass_left, p);
	if (form->tunnel) {
		p->state = PASS_ANSWERING;
		pass_answered(p);
		begin_raw(p, form->tunnel);
		return;
	}
	uv_timer_start(&p->timer, pass_is_late, ANSWER_MS, 0);
	put_request(p, &p->out);
	pass_read(p);
	pass_flush(p);
	/* One without a body may be passed on anew, and its body can be asked for once only. */
	if (!request_is_bare(req))
		http_body_stream(
			req, &(struct http_body_sink){pass_body_data, pass_body_end, pass_left, p});
}
