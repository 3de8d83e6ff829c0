/*
 * What comes down goes to the sandbox as it is. Only the answer to an upgrade is looked at, for
 * what becomes of the requests; and a refusal of our own is put behind answers that are on their
 * way: the host is told that nothing more goes up, and ends when it has answered all.
 */
#include <errno.h>
#include <string.h>

#include "broker/exchange.h"

#define ROUNDS_PER_TURN 16

/* ---- bytes ---- */

/* 1: some came; 0: none now, or no more. */
static int inbound_read(struct exchange *x)
{
	struct inbound *a = &x->down;
	if (a->ended || a->at + a->len == sizeof a->data)
		return 0;
	ssize_t n = side_read(&x->outer, a->data + a->at + a->len, sizeof a->data - a->at - a->len);
	if (n == -EAGAIN)
		return 0;
	if (n < 0 && n != -EPIPE && x->stage != STAGE_REFUSING)
		return (int)n;
	a->ended = n <= 0;
	a->cut = n < 0;
	a->len += n > 0 ? (size_t)n : 0;
	return n > 0;
}

/* 1: all of it has gone; 0: the sandbox takes no more now. */
static int inbound_write(struct exchange *x)
{
	struct inbound *a = &x->down;
	while (a->len > 0) {
		ssize_t n = side_write(&x->inner, a->data + a->at, a->len);
		if (n < 0)
			return n == -EAGAIN ? 0 : (int)n;
		a->at += (size_t)n;
		a->len -= (size_t)n;
	}
	a->at = 0;
	return 1;
}

/* Before an answer to an upgrade goes down: whether it is known what it is. */
static bool inbound_see_upgrade(struct exchange *x)
{
	static const char upgraded[] = "HTTP/1.1 101";
	const struct inbound *a = &x->down;
	size_t size = sizeof upgraded - 1, len = a->len < size ? a->len : size;
	if (x->up.state != OUTBOUND_UPGRADING)
		return true;
	bool is_begin = memcmp(a->data + a->at, upgraded, len) == 0;
	if (len < size && is_begin && !a->ended)
		return false;
	x->up.state = len == size && is_begin ? OUTBOUND_RAW : OUTBOUND_HEAD;
	return true;
}

enum move_result inbound_move(struct exchange *x)
{
	struct inbound *a = &x->down;
	for (int i = 0; i < ROUNDS_PER_TURN; i++) {
		int came = inbound_read(x);
		if (came < 0)
			return MOVE_BROKEN;
		if (came > 0)
			x->active_ms = loop.now_ms;
		int written = inbound_see_upgrade(x) ? inbound_write(x) : 0;
		if (written < 0)
			return MOVE_BROKEN;
		if (written == 0 || !came)
			return a->ended && a->len == 0 ? MOVE_ENDED : MOVE_WAITS;
	}
	return MOVE_AGAIN;
}

/* ---- refusals ---- */

void inbound_refuse(struct exchange *x, const char *status, const char *why)
{
	struct inbound *a = &x->down;
	autobuf text = {0};
	buf_printf(&text,
		"HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
		"Connection: close\r\n\r\nbunker: %s: %s\r\n",
		status, strlen("bunker: : \r\n") + strlen(x->host) + strlen(why), x->host, why);
	buf_require(&text);
	x->stage = STAGE_REFUSING;
	x->since_ms = loop.now_ms;
	x->refusal = buf_take_str(&text);
	if (x->up.count == 0)
		a->ended = true; /* there is nothing to wait for */
	else
		side_shut(&x->outer, true);
}
