/*
 * One brokered connection: it waits until there are entries for its host, greets both sides, then
 * carries requests up and answers down. Both sockets are egress's, too, which is told how many
 * bytes went and when it is over. The sandbox's side is closed by a reset unless both directions
 * have ended in order, so that our death is never taken for the end of the data.
 */
#include "broker/exchange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/authority.h"
#include "broker/tls.h"

#define ENTRIES_MS 5000        /* for the entries of its host to be told */
#define GREET_MS   (10 * 1000) /* for both sides */
#define HEAD_MS    (10 * 1000) /* for a head, from its first byte on */
#define REFUSE_MS  5000        /* for answers that come before a refusal */
#define LEAVE_MS   2000        /* for a refusal to be read */
#define HALF_MS    (60 * 1000) /* without bytes, when the host has ended */
#define IDLE_MS    (60 * 60 * 1000)
#define COUNTS_MS  1000
#define LOG_MS     1000 /* between two lines about hosts that were not accepted */
#define EDGES      (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static struct exchange *connections;
static unsigned exchange_count;

unsigned exchange_total(void)
{
	return exchange_count;
}

/* ---- end ---- */

/* Returns whether egress knows all, or is gone. */
static bool exchange_tell(struct exchange *x)
{
	uint64_t given = side_given(&x->outer), taken = side_taken(&x->outer);
	struct broker_counts counts = {.head.op = BROKER_COUNTS,
		.number = x->number,
		.sent = given - x->told_given,
		.received = taken - x->told_taken,
		.ended = x->stage == STAGE_ENDED};
	memcpy(counts.head.id, x->id, ID_SIZE);
	if (!x->egress)
		return true;
	if (counts.sent + counts.received == 0 && !counts.ended)
		return true;
	if (peer_try_send(x->egress, &counts, sizeof counts, NULL, 0) < 0)
		return false;
	x->told_given = given;
	x->told_taken = taken;
	return true;
}

static void exchange_free(struct exchange *x)
{
	DL_DELETE(connections, x);
	exchange_count--;
	loop_free_later(x);
}

static void exchange_close(struct exchange *x, bool in_order)
{
	if (x->stage == STAGE_ENDED)
		return;
	x->outer.given = side_given(&x->outer); /* outlives its TLS */
	x->outer.taken = side_taken(&x->outer);
	side_close(&x->inner, in_order);
	side_close(&x->outer, in_order);
	outbound_finish(&x->up);
	explicit_bzero(x->up.data, sizeof x->up.data);
	free(take_ptr(x->refusal));
	x->stage = STAGE_ENDED;
	if (exchange_tell(x))
		exchange_free(x);
}

static void exchange_reset(struct exchange *x)
{
	exchange_close(x, false);
}

void exchange_end(const struct peer *egress, uint64_t number)
{
	struct exchange *x, *next;
	DL_FOREACH_SAFE (connections, x, next)
		if (x->egress == egress && x->number == number)
			exchange_reset(x);
}

void exchange_end_all(const struct peer *egress)
{
	struct exchange *x, *next;
	DL_FOREACH_SAFE (connections, x, next) {
		if (x->egress != egress)
			continue;
		x->egress = NULL;
		if (x->stage == STAGE_ENDED)
			exchange_free(x);
		else
			exchange_reset(x);
	}
}

void exchange_review(const struct account *s, const struct entries *next_entries)
{
	struct exchange *x, *next;
	DL_FOREACH_SAFE (connections, x, next)
		if (x->stage != STAGE_WAITING && memcmp(x->id, s->id, ID_SIZE) == 0 &&
			(!next_entries || !entries_agree(&s->entries, next_entries, x->host)))
			exchange_reset(x);
}

/* ---- greeting ---- */

static void host_fails(struct exchange *x)
{
	static int64_t logged_ms;
	tls_describe_failure(x->outer.ssl, x->failure, sizeof x->failure);
	if (logged_ms && loop.now_ms - logged_ms < LOG_MS)
		return;
	logged_ms = loop.now_ms;
	log_warn("a host was not accepted", "sandbox", x->id, "host", x->host, "why", x->failure);
}

/* 1: both sides are there, or the host is known to fail; 0: waits; negative: no sandbox to tell. */
static int exchange_greet(struct exchange *x)
{
	int outer = x->failure[0] ? 1 : side_greet(&x->outer);
	if (outer < 0)
		host_fails(x);
	int inner = side_greet(&x->inner);
	return inner <= 0 ? inner : outer != 0;
}

/* ---- moving ---- */

/* Puts the refusal where answers were, once there are no more; then all of it has to go. */
static void exchange_move_refusal(struct exchange *x)
{
	enum move_result moved = inbound_move(x);
	if (moved == MOVE_ENDED && x->refusal) {
		x->down.at = 0;
		x->down.len = strlen(x->refusal);
		memcpy(x->down.data, x->refusal, x->down.len);
		free(take_ptr(x->refusal));
		moved = inbound_move(x);
	}
	if (moved == MOVE_BROKEN) {
		exchange_reset(x);
	} else if (moved == MOVE_AGAIN) {
		loop_change(&x->outer.source, EDGES);
	} else if (moved == MOVE_ENDED) {
		side_shut(&x->inner, true);
		x->stage = STAGE_LEAVING;
		x->since_ms = loop.now_ms;
	}
}

/* Reads what is there: closing a socket with unread bytes in it resets the connection. */
static void exchange_drain(struct exchange *x)
{
	char data[4096];
	ssize_t n;
	while ((n = side_read(&x->inner, data, sizeof data)) > 0)
		continue;
	if (n != -EAGAIN)
		exchange_close(x, n == 0 || n == -EPIPE);
}

/* One direction. Returns false when the connection is gone. */
static bool exchange_moved(
	struct exchange *x, enum move_result moved, struct side *from, struct side *to, bool *ended)
{
	if (moved == MOVE_BROKEN) {
		exchange_reset(x);
		return false;
	}
	if (moved == MOVE_AGAIN)
		loop_change(&from->source, EDGES); /* told of again at once, after the others */
	if (moved == MOVE_ENDED) {
		*ended = true;
		side_shut(to, to == &x->outer || !x->down.cut);
	}
	return true;
}

/* Answers first: they say what becomes of an upgrade. */
static void exchange_carry(struct exchange *x)
{
	int greeted = exchange_greet(x);
	if (greeted <= 0) {
		if (greeted < 0)
			exchange_reset(x);
		return;
	}
	if (!x->down_ended && !x->failure[0] &&
		!exchange_moved(x, inbound_move(x), &x->outer, &x->inner, &x->down_ended))
		return;
	if (!x->up_ended &&
		!exchange_moved(x, outbound_move(x), &x->inner, &x->outer, &x->up_ended))
		return;
	if (x->stage == STAGE_OPEN && x->up_ended && (x->down_ended || x->failure[0]))
		exchange_close(x, !x->failure[0]);
}

static void exchange_move(struct exchange *x)
{
	if (x->stage == STAGE_OPEN)
		exchange_carry(x);
	if (x->stage == STAGE_REFUSING)
		exchange_move_refusal(x);
	if (x->stage == STAGE_LEAVING)
		exchange_drain(x);
}

static void inner_ready(struct source *s, uint32_t events)
{
	struct exchange *x =
		(struct exchange *)((char *)s - offsetof(struct exchange, inner.source));
	if (events & EPOLLERR)
		exchange_reset(x);
	else
		exchange_move(x);
}

static void outer_ready(struct source *s, uint32_t events)
{
	struct exchange *x =
		(struct exchange *)((char *)s - offsetof(struct exchange, outer.source));
	(void)events; /* who reads will see an error, too */
	exchange_move(x);
}

/* ---- begin ---- */

static bool exchange_dress(struct exchange *x, const struct account *s)
{
	if (!x->is_tls)
		return true;
	if (!s->authority)
		return false;
	x->inner.ssl = tls_new_server(x->inner.source.fd, x->host);
	x->outer.ssl = tls_new_client(x->outer.source.fd, x->host);
	return x->inner.ssl && x->outer.ssl &&
	       authority_use(s->authority, x->inner.ssl, x->host) == 0;
}

/* Goes on if there are entries for its host. */
static void exchange_try(struct exchange *x)
{
	const struct account *s = account_find(x->id);
	if (!s || !s->is_told || !entries_find(&s->entries, x->host))
		return;
	x->stage = STAGE_OPEN;
	x->since_ms = x->active_ms = loop.now_ms;
	if (!exchange_dress(x, s) || loop_add(&x->inner.source, EDGES) < 0 ||
		loop_add(&x->outer.source, EDGES) < 0)
		exchange_reset(x);
	else
		exchange_move(x);
}

void exchange_wake(void)
{
	struct exchange *x, *next;
	DL_FOREACH_SAFE (connections, x, next)
		if (x->stage == STAGE_WAITING)
			exchange_try(x);
}

void exchange_begin(struct peer *egress, const struct broker_connection *c, int inner, int outer)
{
	struct exchange *x = mem_new(sizeof *x);
	x->egress = egress;
	x->number = c->number;
	memcpy(x->id, c->head.id, ID_SIZE);
	memcpy(x->host, c->host, sizeof x->host);
	x->is_tls = c->is_tls != 0;
	x->inner.source = (struct source){inner, inner_ready};
	x->outer.source = (struct source){outer, outer_ready};
	x->since_ms = x->active_ms = loop.now_ms;
	DL_APPEND(connections, x);
	exchange_count++;
	if (exchange_count > CONNECTIONS_MAX)
		exchange_reset(x);
	else
		exchange_try(x);
}

/* ---- time ---- */

static void exchange_pass_open(struct exchange *x)
{
	int64_t idle = loop.now_ms - x->active_ms;
	bool greeted = side_is_greeted(&x->inner) && (x->failure[0] || side_is_greeted(&x->outer));
	bool late = !greeted && loop.now_ms - x->since_ms > GREET_MS;
	if (late || idle > IDLE_MS || (x->down_ended && idle > HALF_MS)) {
		exchange_reset(x);
	} else if (x->up.head_ms && loop.now_ms - x->up.head_ms > HEAD_MS) {
		inbound_refuse(x, "408 Request Timeout", "the head of the request did not come");
		exchange_move(x);
	}
}

static void exchange_pass_time(struct exchange *x)
{
	int64_t waited = loop.now_ms - x->since_ms;
	switch (x->stage) {
	case STAGE_WAITING:
		if (waited > ENTRIES_MS)
			exchange_reset(x);
		break;
	case STAGE_OPEN:
		exchange_pass_open(x);
		break;
	case STAGE_REFUSING:
		if (waited > REFUSE_MS)
			exchange_reset(x);
		break;
	case STAGE_LEAVING:
		if (waited > LEAVE_MS)
			exchange_close(x, true);
		break;
	case STAGE_ENDED:
		if (exchange_tell(x))
			exchange_free(x);
		break;
	}
}

void exchange_tick(void)
{
	static int64_t told_ms;
	struct exchange *x, *next;
	bool tells = loop.now_ms - told_ms >= COUNTS_MS;
	told_ms = tells ? loop.now_ms : told_ms;
	DL_FOREACH_SAFE (connections, x, next) {
		if (tells && x->stage != STAGE_ENDED)
			exchange_tell(x);
		exchange_pass_time(x);
	}
}
