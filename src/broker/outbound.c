/*
 * What goes up: each request is read as a whole head, has to be for the host of the connection, and
 * goes on with what the rules add. Bodies pass through a buffer and are not looked at. A WebSocket
 * is what the server says 101 to, on a connection without other requests; from there on bytes pass
 * as they are.
 */
#include <errno.h>
#include <string.h>

#include "broker/exchange.h"
#include "broker/rewrite.h"

#define ROUNDS_PER_TURN 16

static void outbound_drop(struct outbound *q, size_t n)
{
	q->len -= n;
	memmove(q->data, q->data + n, q->len);
}

static void head_wipe(struct outbound *q)
{
	if (q->head.data)
		explicit_bzero(q->head.data, q->head.len);
	buf_finish(&q->head);
	q->head_sent = 0;
}

void outbound_finish(struct outbound *q)
{
	head_wipe(q);
}

/* ---- heads ---- */

/* What stands before its end, or why it goes nowhere; NULL: it may go. */
static const char *head_refusal(
	const struct exchange *x, const struct request *r, const char **status)
{
	*status = "400 Bad Request";
	if (strcmp(r->host, x->host) != 0) {
		*status = "421 Misdirected Request";
		return "this connection is for another host";
	}
	if (r->upgrades && x->up.count > 0)
		return "a WebSocket needs a connection of its own";
	if (r->upgrades && (r->is_chunked || r->length > 0))
		return "a WebSocket begins without a body";
	return NULL;
}

static void outbound_begin_body(struct outbound *q, const struct request *r)
{
	q->count++;
	q->left = r->length;
	q->chunks = (struct chunks){0};
	q->state = r->upgrades     ? OUTBOUND_UPGRADING
		   : r->is_chunked ? OUTBOUND_CHUNKS
		   : q->left > 0   ? OUTBOUND_BODY
				   : OUTBOUND_HEAD;
}

/* 1: a head goes on; 0: more of it is needed; -EACCES: refused. */
static int outbound_take_head(struct exchange *x)
{
	struct outbound *q = &x->up;
	struct request request;
	const char *status = "400 Bad Request", *why = "the request is malformed";
	int n = request_read(q->data, q->len, &request);
	if (n == 0)
		return 0;
	if (n > 0)
		why = head_refusal(x, &request, &status);
	const struct account *s = account_find(x->id);
	const struct entries_host *host = s ? entries_find(&s->entries, x->host) : NULL;
	if (!why && x->failure[0]) {
		status = "502 Bad Gateway";
		why = x->failure;
	} else if (!why &&
		   (!host || rewrite_head(&q->head, q->data, (size_t)n, host, x->is_tls) < 0)) {
		status = "431 Request Header Fields Too Large";
		why = "the head is too long with what the rules add";
	}
	if (why) {
		inbound_refuse(x, status, why);
		return -EACCES;
	}
	outbound_drop(q, (size_t)n);
	outbound_begin_body(q, &request);
	return 1;
}

/* ---- bodies ---- */

static int outbound_take_body(struct outbound *q)
{
	q->passed = q->left < q->len ? (size_t)q->left : q->len;
	q->left -= q->passed;
	if (q->left == 0)
		q->state = OUTBOUND_HEAD;
	return q->passed > 0;
}

static int outbound_take_chunks(struct exchange *x)
{
	struct outbound *q = &x->up;
	ptrdiff_t n = chunks_pass(&q->chunks, q->data, q->len);
	if (n < 0)
		return -EPROTO; /* half of it is there already: a reset is all that can be said */
	q->passed = (size_t)n;
	if (q->chunks.ended)
		q->state = OUTBOUND_HEAD;
	return n > 0;
}

/* 1: something may be sent; 0: not now; negative: nothing more will. */
static int outbound_take(struct exchange *x)
{
	struct outbound *q = &x->up;
	if (q->len == 0 || q->state == OUTBOUND_UPGRADING)
		return 0;
	switch (q->state) {
	case OUTBOUND_HEAD:
		return outbound_take_head(x);
	case OUTBOUND_BODY:
		return outbound_take_body(q);
	case OUTBOUND_CHUNKS:
		return outbound_take_chunks(x);
	default:
		q->passed = q->len;
		return 1;
	}
}

/* ---- bytes ---- */

/* 1: some came; 0: none now, no more, or no room. */
static int outbound_read(struct exchange *x)
{
	struct outbound *q = &x->up;
	if (q->ended || q->len == sizeof q->data)
		return 0;
	ssize_t n = side_read(&x->inner, q->data + q->len, sizeof q->data - q->len);
	if (n == -EAGAIN)
		return 0;
	if (n < 0 && n != -EPIPE)
		return (int)n;
	/* Between requests nobody misses a client's farewell. */
	if (n == -EPIPE && (q->state != OUTBOUND_HEAD || q->len > 0))
		return -EPIPE;
	q->ended = n <= 0;
	q->len += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* 1: all that may go has gone; 0: the host takes no more now. */
static int outbound_write(struct exchange *x)
{
	struct outbound *q = &x->up;
	while (q->head.len > 0 || q->passed > 0) {
		bool is_head = q->head.len > 0;
		ssize_t n = is_head ? side_write(&x->outer, q->head.data + q->head_sent,
					      q->head.len - q->head_sent)
				    : side_write(&x->outer, q->data, q->passed);
		if (n < 0)
			return n == -EAGAIN ? 0 : (int)n;
		if (is_head) {
			q->head_sent += (size_t)n;
			if (q->head_sent == q->head.len)
				head_wipe(q);
		} else {
			q->passed -= (size_t)n;
			outbound_drop(q, (size_t)n);
		}
	}
	return 1;
}

static enum move_result outbound_at_end(const struct outbound *q)
{
	/* Half a request is none. */
	bool whole = q->len == 0 && (q->state == OUTBOUND_HEAD || q->state == OUTBOUND_RAW);
	return whole ? MOVE_ENDED : q->state == OUTBOUND_UPGRADING ? MOVE_WAITS : MOVE_BROKEN;
}

static void outbound_watch_head(struct outbound *q)
{
	bool is_part = q->state == OUTBOUND_HEAD && q->len > 0;
	q->head_ms = !is_part ? 0 : q->head_ms ? q->head_ms : loop.now_ms;
}

enum move_result outbound_move(struct exchange *x)
{
	struct outbound *q = &x->up;
	for (int i = 0; i < ROUNDS_PER_TURN; i++) {
		int written = outbound_write(x);
		if (written <= 0)
			return written < 0 ? MOVE_BROKEN : MOVE_WAITS;
		int took = outbound_take(x);
		if (took < 0)
			return took == -EACCES ? MOVE_WAITS : MOVE_BROKEN;
		int came = took ? 1 : outbound_read(x);
		outbound_watch_head(q);
		if (came < 0)
			return MOVE_BROKEN;
		if (came > 0)
			x->active_ms = loop.now_ms;
		else
			return q->ended ? outbound_at_end(q) : MOVE_WAITS;
	}
	return MOVE_AGAIN;
}
