/*
 * What goes up on a connection that was decided by the Host of its first request: every request is
 * read before it goes, and has to be for the same host. Bytes pass through a buffer; a body is not
 * looked at. A WebSocket is what the server says 101 to, on a connection without other requests;
 * from there on bytes pass as they are.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "egress/connection.h"

#define ROUNDS_PER_TURN 16

enum requests_state {
	REQUESTS_HEAD,
	REQUESTS_BODY,
	REQUESTS_CHUNKS,
	REQUESTS_UPGRADING, /* until the server has answered */
	REQUESTS_UPGRADED
};

void requests_begin(struct connection *x, const char *host)
{
	free(x->requests);
	x->requests = mem_new(sizeof *x->requests);
	memcpy(x->requests->host, host, strlen(host) + 1);
}

/* ---- what may pass ---- */

static int requests_take_head(struct requests *q)
{
	struct request request;
	int n = request_read(q->data + q->passed, q->len - q->passed, &request);
	if (n <= 0)
		return n;
	bool first = q->count++ == 0;
	if (strcmp(request.host, q->host) != 0 || (request.upgrades && !first))
		return -EACCES;
	q->passed += (size_t)n;
	q->left = request.length;
	q->chunks = (struct chunks){0};
	q->state = request.is_chunked ? REQUESTS_CHUNKS
		   : q->left > 0      ? REQUESTS_BODY
				      : REQUESTS_HEAD;
	if (request.upgrades && q->state != REQUESTS_HEAD)
		return -EACCES;
	if (request.upgrades)
		q->state = REQUESTS_UPGRADING;
	return 1;
}

static int requests_take_body(struct requests *q)
{
	size_t here = q->len - q->passed;
	size_t take = q->left < here ? (size_t)q->left : here;
	q->passed += take;
	q->left -= take;
	if (q->left == 0)
		q->state = REQUESTS_HEAD;
	return take > 0;
}

static int requests_take_chunks(struct requests *q)
{
	ptrdiff_t n = chunks_pass(&q->chunks, q->data + q->passed, q->len - q->passed);
	if (n < 0)
		return (int)n;
	q->passed += (size_t)n;
	if (q->chunks.ended)
		q->state = REQUESTS_HEAD;
	return n > 0;
}

/* 1: more may pass than before; 0: not now; negative: refused. */
static int requests_take(struct requests *q)
{
	if (q->passed == q->len || q->state == REQUESTS_UPGRADING)
		return 0;
	switch (q->state) {
	case REQUESTS_HEAD:
		return requests_take_head(q);
	case REQUESTS_BODY:
		return requests_take_body(q);
	case REQUESTS_CHUNKS:
		return requests_take_chunks(q);
	default:
		q->passed = q->len;
		return 1;
	}
}

/* ---- bytes ---- */

/* 1: some came, or there may be more when there is room; 0: none now, or no more. */
static int requests_read(struct connection *x)
{
	struct requests *q = x->requests;
	if (q->ended || q->len == sizeof q->data)
		return !q->ended && q->state != REQUESTS_UPGRADING;
	ssize_t n = recv(x->inner.fd, q->data + q->len, sizeof q->data - q->len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	q->ended = n == 0;
	q->len += (size_t)n;
	return n > 0;
}

static int requests_write(struct connection *x)
{
	struct requests *q = x->requests;
	while (q->passed > 0) {
		ssize_t n = send(x->outer.fd, q->data, q->passed, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
		x->sent += (uint64_t)n;
		q->passed -= (size_t)n;
		q->len -= (size_t)n;
		memmove(q->data, q->data + n, q->len);
	}
	return 0;
}

enum relay_result requests_move(struct connection *x)
{
	struct requests *q = x->requests;
	for (int i = 0; i < ROUNDS_PER_TURN; i++) {
		int came = requests_read(x), more = 0, r;
		while ((r = requests_take(q)) > 0)
			more = 1;
		if (came < 0 || r < 0 || requests_write(x) < 0)
			return RELAY_BROKEN;
		if (q->passed > 0)
			return RELAY_WAITS;
		if (q->state == REQUESTS_UPGRADED && q->len == 0) {
			free(x->requests);
			x->requests = NULL;
			return RELAY_AGAIN;
		}
		if (q->ended) /* half a request is none */
			return q->len > 0 ? RELAY_BROKEN : RELAY_ENDED;
		if (!came && !more)
			return RELAY_WAITS;
	}
	return RELAY_AGAIN;
}

bool requests_see_answer(struct connection *x)
{
	static const char upgraded[] = "HTTP/1.1 101";
	char data[sizeof upgraded - 1];
	struct requests *q = x->requests;
	if (!q || q->state != REQUESTS_UPGRADING)
		return true;
	ssize_t n = recv(x->outer.fd, data, sizeof data, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0)
		return true; /* whoever reads will see it, too */
	bool is_begin = memcmp(data, upgraded, (size_t)n) == 0;
	if (n > 0 && n < (ssize_t)sizeof data && is_begin)
		return false;
	q->state = n == (ssize_t)sizeof data && is_begin ? REQUESTS_UPGRADED : REQUESTS_HEAD;
	return true;
}
