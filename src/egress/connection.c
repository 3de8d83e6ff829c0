/*
 * One connection of a sandbox: decided (decide.c), opened on the host's side (dial.c), then
 * relayed. The side of the sandbox is closed by a reset unless both directions have ended in order,
 * so that our death, or a server that could not be reached, is never taken for the end of the data.
 * What the sandbox resets is reset upstream.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "egress/connection.h"

#define NAMES_PORT         53
#define CONNECT_TIMEOUT_MS (30 * 1000)
#define IDLE_TIMEOUT_MS    (60 * 60 * 1000)
#define REFUSE_MS          2000        /* for a refusal to be read */
#define BURST_MIN          (64 * 1024) /* bytes of a sandbox at once, however narrow it is */
#define SHARE_MIN          4096        /* bytes of a connection at once */
#define EDGES              (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)

static struct connection *all;

static void inner_ready(struct source *s, uint32_t events);
static void outer_ready(struct source *s, uint32_t events);

/* ---- end ---- */

static void set_linger(int fd, bool by_reset)
{
	const struct linger value = {.l_onoff = by_reset};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &value, sizeof value);
}

void connection_count(struct connection *x)
{
	uint64_t out = x->sent - x->counted_sent, in = x->received - x->counted_received;
	x->client->bytes_out += out;
	x->client->bytes_in += in;
	if (x->counts_for)
		destination_add_bytes(
			&x->client->destinations, x->counts_for, in, out, loop.now_ms);
	x->counted_sent = x->sent;
	x->counted_received = x->received;
}

static void connection_close(struct connection *x, bool in_order)
{
	connection_count(x);
	if (x->counts_for)
		take_ptr(x->counts_for)->open--;
	struct source *const sides[] = {&x->inner, &x->outer};
	if (x->broker)
		brokered_cut(x);
	for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
		if (sides[i]->fd >= 0 && in_order)
			set_linger(sides[i]->fd, false);
		loop_remove(sides[i]);
	}
	dial_forget(x);
	flow_release(&x->up);
	flow_release(&x->down);
	free(take_ptr(x->name));
	free(take_ptr(x->requests));
	DL_DELETE(x->client->connections, x);
	DL_DELETE2(all, x, all_prev, all_next);
	x->client->connection_count--;
	egress.connection_count--;
	loop_free_later(x);
}

void connection_reset(struct connection *x)
{
	connection_close(x, false);
}

void connection_reset_all(struct client *c)
{
	while (c->connections)
		connection_reset(c->connections);
}

void connection_review(struct client *c)
{
	struct connection *x, *next;
	DL_FOREACH_SAFE (c->connections, x, next) {
		if (x->stage == STAGE_LOOKING)
			decide_begin(x);
		else if (x->stage != STAGE_REFUSING && !decide_holds(x))
			connection_reset(x);
	}
}

void connection_set_stage(struct connection *x, enum stage stage)
{
	x->stage = stage;
	x->since_ms = loop.now_ms;
}

/* ---- refusals ---- */

/* Reads what is there: closing a socket with unread bytes in it resets the connection. */
static void refuse_drain(struct connection *x)
{
	char data[4096];
	ssize_t n;
	while ((n = recv(x->inner.fd, data, sizeof data, MSG_DONTWAIT)) > 0)
		continue;
	if (n == 0)
		connection_close(x, true);
	else if (errno != EAGAIN && errno != EINTR)
		connection_reset(x);
}

void connection_refuse(struct connection *x, bool is_http, const char *host)
{
	static const char answer[] = "HTTP/1.1 403 Forbidden\r\n"
				     "Content-Type: text/plain\r\n"
				     "Content-Length: 58\r\n"
				     "Connection: close\r\n\r\n"
				     "bunker: the network of this sandbox does not allow this.\r\n";
	tell_denied(x->client, host, &x->destination);
	if (!is_http ||
		send(x->inner.fd, answer, sizeof answer - 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		connection_reset(x);
		return;
	}
	shutdown(x->inner.fd, SHUT_WR);
	dial_forget(x);
	connection_set_stage(x, STAGE_REFUSING);
	refuse_drain(x);
}

/* ---- relay ---- */

/* What became of one direction. Returns false when the connection is gone. */
static bool connection_moved(struct connection *x, enum relay_result result, struct source *from,
	struct source *to, bool *ended)
{
	switch (result) {
	case RELAY_WAITS:
		return true;
	case RELAY_AGAIN:
		loop_change(from, EDGES); /* told of again at once, after the others */
		return true;
	case RELAY_ENDED:
		*ended = true;
		shutdown(to->fd, SHUT_WR);
		return true;
	default:
		connection_reset(x);
		return false;
	}
}

/*
 * How many bytes it may move now. What its sandbox has left is shared by its connections, so that
 * the first one does not take it all.
 */
static size_t connection_allowance(struct connection *x, struct limit *l)
{
	const int64_t bandwidth = egress.config.bandwidth;
	const struct limit_rate rate = {bandwidth, bandwidth < BURST_MIN ? BURST_MIN : bandwidth};
	if (bandwidth == 0)
		return SIZE_MAX / 2;
	int64_t left = limit_left(l, &rate, loop.now_ms);
	int64_t share = left / x->client->connection_count;
	x->throttled |= left == 0;
	if (left < SHARE_MIN)
		return (size_t)left;
	return (size_t)(share < SHARE_MIN ? SHARE_MIN : share);
}

/* One that stopped for want of bandwidth gets no other event: the tick goes on with it. */
static enum relay_result connection_use(struct connection *x, struct limit *l, size_t allowed,
	uint64_t moved, enum relay_result result)
{
	if (egress.config.bandwidth == 0)
		return result;
	limit_use(l, (int64_t)moved);
	if (result != RELAY_AGAIN || moved < allowed)
		return result;
	x->throttled = true;
	return RELAY_WAITS;
}

static bool connection_move_up(struct connection *x)
{
	struct limit *l = &x->client->up;
	if (x->up_ended || x->unseen)
		return true;
	const uint64_t before = x->sent;
	size_t allowed = connection_allowance(x, l);
	if (allowed == 0)
		return true;
	enum relay_result r =
		x->requests ? requests_move(x)
			    : flow_move(&x->up, x->inner.fd, x->outer.fd, allowed, &x->sent);
	r = connection_use(x, l, allowed, x->sent - before, r);
	return connection_moved(x, r, &x->inner, &x->outer, &x->up_ended);
}

static bool connection_move_down(struct connection *x)
{
	struct limit *l = &x->client->down;
	if (x->down_ended)
		return true;
	const uint64_t before = x->received;
	size_t allowed = connection_allowance(x, l);
	if (allowed == 0)
		return true;
	enum relay_result r = flow_move(&x->down, x->outer.fd, x->inner.fd, allowed, &x->received);
	r = connection_use(x, l, allowed, x->received - before, r);
	return connection_moved(x, r, &x->outer, &x->inner, &x->down_ended);
}

void connection_relay(struct connection *x)
{
	x->active_ms = loop.now_ms;
	if (x->unseen && !decide_late(x))
		return;
	bool answers = requests_see_answer(x);
	if (!connection_move_up(x) || (answers && !connection_move_down(x)))
		return;
	connection_count(x);
	if (x->up_ended && x->down_ended)
		connection_close(x, true);
}

static void connection_go_on(struct connection *x)
{
	x->throttled = false;
	connection_relay(x);
}

static void inner_ready(struct source *s, uint32_t events)
{
	struct connection *x =
		(struct connection *)((char *)s - offsetof(struct connection, inner));
	if (events & EPOLLERR)
		connection_reset(x);
	else if (x->stage == STAGE_OPEN)
		connection_relay(x);
	else if (x->stage == STAGE_LOOKING)
		decide_look(x);
	else if (x->stage == STAGE_REFUSING)
		refuse_drain(x);
}

static void outer_ready(struct source *s, uint32_t events)
{
	struct connection *x =
		(struct connection *)((char *)s - offsetof(struct connection, outer));
	if (x->stage == STAGE_DIALLING) {
		if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
			dial_finish(x);
	} else if (events & EPOLLERR) {
		connection_reset(x);
	} else if (x->stage == STAGE_OPEN) {
		connection_relay(x);
	}
}

/* ---- begin ---- */

static bool find_destination(int fd, struct address_port *ret)
{
	struct sockaddr_storage name = {0};
	socklen_t len = sizeof name;
	return getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
	       address_from_socket(&name, ret);
}

void connection_begin(struct client *c, int fd)
{
	const int on = 1;
	struct address_port destination = {0};
	set_linger(fd, true);
	if (!find_destination(fd, &destination)) {
		close(fd);
		return;
	}
	if (destination.port == NAMES_PORT) {
		name_stream_begin(c, fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	struct connection *x = mem_new(sizeof *x);
	x->client = c;
	x->inner = (struct source){fd, inner_ready};
	x->outer = (struct source){-1, outer_ready};
	x->destination = destination;
	x->active_ms = loop.now_ms;
	flow_init(&x->up);
	flow_init(&x->down);
	DL_APPEND(c->connections, x);
	DL_APPEND2(all, x, all_prev, all_next);
	c->connection_count++;
	egress.connection_count++;
	if (loop_add(&x->inner, EDGES) < 0)
		connection_reset(x);
	else
		decide_begin(x);
}

static void connection_pass_time(struct connection *x)
{
	int64_t idle = loop.now_ms - x->active_ms;
	switch (x->stage) {
	case STAGE_LOOKING:
		decide_look(x);
		break;
	case STAGE_RESOLVING:
	case STAGE_DIALLING:
		if (idle > CONNECT_TIMEOUT_MS)
			connection_reset(x);
		else
			dial_tick(x);
		break;
	case STAGE_OPEN:
	case STAGE_BROKERED:
		if (idle > IDLE_TIMEOUT_MS)
			connection_reset(x);
		else if (x->throttled && x->stage == STAGE_OPEN)
			connection_go_on(x);
		break;
	case STAGE_HANDING:
		brokered_tick(x);
		break;
	case STAGE_REFUSING:
		if (loop.now_ms - x->since_ms > REFUSE_MS)
			connection_close(x, true);
		break;
	}
}

void connection_tick(void)
{
	struct connection *x, *next;
	DL_FOREACH_SAFE2(all, x, next, all_next)
	{
		connection_pass_time(x);
	}
}
