/*
 * Calls: from a port's number to a connected socket.
 *
 * A sandbox whose ports are in use has sockets in stock, so that a call does not wait for init.
 * They are asked for several at a time: init does not run beside each request. In the same network
 * namespace a connection is made, or refused, before connect returns.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/port/port_link.h"
#include "box/sandbox/lease.h"
#include "box/sandbox/pause.h"

#define CALLS_MAX  256 /* at once in a sandbox */
#define CONNECT_MS 10000
#define TRIES_MAX  6 /* of asking: both versions of IP, and a few connections that were lost */

/* ---- the end ---- */

static void port_stop_connecting(struct port_call *c)
{
	if (c->poll)
		uv_close((uv_handle_t *)take_ptr(c->poll), (uv_close_cb)free);
	if (c->fd >= 0)
		close(take_fd(&c->fd));
}

static void port_call_free(struct port_call *c)
{
	struct sandbox *s = c->sandbox;
	port_stop_connecting(c);
	DL_DELETE(s->ports.calls, c);
	if (c->connected) {
		uv_close((uv_handle_t *)c->timer, (uv_close_cb)free);
		s->ports.count--;
		sandbox_execution_ended(s);
	}
	free(c);
}

/*
 * A call that is cancelled while init owes it a socket takes the connection along, because the
 * answers would come in another order than the questions. Those behind it ask again.
 */
void port_cancel(struct port_call *c)
{
	struct sandbox *s = c->sandbox;
	bool was_asking = c->state == PORT_ASKING;
	port_call_free(c);
	if (was_asking)
		port_sockets_lost(s);
}

static void port_call_done(struct port_call *c, uv_tcp_t *stream, const struct error *e)
{
	port_connected_fn *connected = c->connected;
	void *arg = c->arg;
	port_call_free(c);
	if (connected)
		connected(arg, stream, e);
}

static void port_call_fail(struct port_call *c, int error)
{
	struct error e;
	unsigned port = c->port;
	if (error == -ECONNREFUSED)
		error_set(&e, ERROR_PORT_CLOSED, "nothing in the sandbox listens on port %u", port);
	else
		error_set(&e, ERROR_UNAVAILABLE, "port %u of the sandbox cannot be reached: %s",
			port, strerror(-error));
	port_call_done(c, NULL, &e);
}

static void port_call_late(uv_timer_t *timer)
{
	struct port_call *c = timer->data;
	struct sandbox *s = c->sandbox;
	bool was_asking = c->state == PORT_ASKING;
	port_call_fail(c, -ETIMEDOUT);
	if (was_asking)
		port_sockets_lost(s);
}

/* ---- the stock ---- */

static void port_drop_stock(struct sandbox *s)
{
	while (s->ports.stocked > 0)
		close(s->ports.stock[--s->ports.stocked]);
}

/* Asks for as many as there is room for, unless there are two or init owes some. */
static void port_refill(struct sandbox *s)
{
	struct port_call *c;
	unsigned room = ARRAY_LEN(s->ports.stock) - s->ports.stocked;
	DL_FOREACH (s->ports.calls, c)
		if (!c->connected)
			return;
	if (s->ports.stocked > 1 || port_link_ask(s, 4, room) < 0)
		return;
	for (; room > 0; room--) {
		c = mem_new(sizeof *c);
		*c = (struct port_call){.sandbox = s, .state = PORT_ASKING, .version = 4, .fd = -1};
		DL_APPEND(s->ports.calls, c);
	}
}

/* ---- connecting ---- */

static void port_call_ask(struct port_call *c)
{
	c->state = PORT_ASKING;
	int r = c->tries++ < TRIES_MAX ? port_link_ask(c->sandbox, c->version, 1) : -ECONNRESET;
	if (r < 0)
		port_call_fail(c, r);
}

/* Returns 0 when it is connected, -EINPROGRESS when that takes time, or another -errno. */
static int port_connect_socket(int fd, unsigned port, unsigned version)
{
	const struct sockaddr_in v4 = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT};
	const struct sockaddr *to =
		version == 4 ? (const struct sockaddr *)&v4 : (const struct sockaddr *)&v6;
	socklen_t len = version == 4 ? sizeof v4 : sizeof v6;
	const int on = 1;
	/* Whatever init has made of it. */
	if (ioctl(fd, FIONBIO, &on) < 0)
		return -errno;
	int r = connect(fd, to, len) < 0 ? -errno : 0;
	/* The answer is there by now, but only a second call tells it. */
	if (r == -EINPROGRESS)
		r = connect(fd, to, len) < 0 ? -errno : 0;
	return r == -EALREADY ? -EINPROGRESS : r;
}

/* Takes the socket. Returns NULL if it cannot be used. */
static uv_tcp_t *port_open_stream(struct sandbox *s, int fd)
{
	uv_tcp_t *stream = mem_new(sizeof *stream);
	uv_tcp_init(s->box->loop, stream);
	if (uv_tcp_open(stream, fd) < 0) {
		close(fd);
		port_close(stream);
		return NULL;
	}
	uv_tcp_nodelay(stream, 1);
	return stream;
}

/* 127.0.0.1 was refused: the same question for ::1, at the end of the queue. */
static void port_try_next(struct port_call *c, int error)
{
	struct sandbox *s = c->sandbox;
	port_stop_connecting(c);
	if (c->version == 6 || error != -ECONNREFUSED) {
		port_call_fail(c, error);
		return;
	}
	c->version = 6;
	DL_DELETE(s->ports.calls, c);
	DL_APPEND(s->ports.calls, c);
	port_call_ask(c);
}

static void port_call_settle(struct port_call *c, int error)
{
	if (error) {
		port_try_next(c, error);
		return;
	}
	uv_tcp_t *stream = port_open_stream(c->sandbox, take_fd(&c->fd));
	port_refill(c->sandbox);
	if (stream)
		port_call_done(c, stream, NULL);
	else
		port_call_fail(c, -EMFILE);
}

static void port_connect_ready(uv_poll_t *poll, int status, int events)
{
	struct port_call *c = poll->data;
	int error = 0;
	socklen_t len = sizeof error;
	(void)events;
	/* libuv tells any error of the socket as EBADF. */
	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (status < 0 && error == 0)
		error = EIO;
	uv_close((uv_handle_t *)take_ptr(c->poll), (uv_close_cb)free);
	port_call_settle(c, -error);
}

/* Waits until a socket is connected, or is not. */
static void port_call_wait(struct port_call *c, int fd)
{
	uv_poll_t *poll = mem_new(sizeof *poll);
	c->state = PORT_CONNECTING;
	c->fd = fd;
	/* One that cannot be watched is late. */
	if (uv_poll_init(c->sandbox->box->loop, poll, fd) < 0) {
		free(poll);
		return;
	}
	c->poll = poll;
	poll->data = c;
	uv_poll_start(poll, UV_WRITABLE, port_connect_ready);
}

/* Takes the socket. Only from the loop. */
static void port_call_connect(struct port_call *c, int fd)
{
	int r = port_connect_socket(fd, c->port, c->version);
	if (r == -EINPROGRESS) {
		port_call_wait(c, fd);
		return;
	}
	c->state = PORT_CONNECTING;
	c->fd = fd;
	port_call_settle(c, r);
}

/* The oldest question is answered: for the stock, which has room, or for a call. */
void port_socket_came(struct sandbox *s, int fd_or_error)
{
	struct port_call *c = s->ports.calls;
	while (c && c->state != PORT_ASKING)
		c = c->next;
	if (!c && fd_or_error >= 0) {
		close(fd_or_error);
	} else if (c && !c->connected) {
		if (fd_or_error >= 0)
			s->ports.stock[s->ports.stocked++] = fd_or_error;
		port_call_free(c);
	} else if (c && fd_or_error >= 0) {
		port_call_connect(c, fd_or_error);
	} else if (c) {
		/* A kernel without IPv6 has no socket for ::1: the port is closed. */
		port_call_fail(c, c->version == 6 ? -ECONNREFUSED : fd_or_error);
	}
}

/* Asks again for each that waits: the connection may have been closed for the sake of another. */
void port_sockets_lost(struct sandbox *s)
{
	struct port_call *c, *next;
	port_link_close(s);
	port_drop_stock(s);
	DL_FOREACH_SAFE (s->ports.calls, c, next)
		if (!c->connected)
			port_call_free(c);
		else if (c->state == PORT_ASKING)
			port_call_ask(c);
}

/* ---- the begin ---- */

bool port_sandbox_sleeps(const struct sandbox *s)
{
	return s->pause.pausing || s->status == SANDBOX_PAUSED || s->status == SANDBOX_SUSPENDED;
}

char *port_hold(struct sandbox *s, struct error *e)
{
	if (tenant_check_descriptor(s->box, s->tenant, e) < 0)
		return NULL;
	tenant_count_descriptors(s->box, s->tenant, 1);
	return mem_copy_text(s->tenant);
}

void port_let_go(struct box *b, const char *tenant)
{
	tenant_count_descriptors(b, tenant, -1);
}

/* Connects a socket of the stock. Returns as port_connect_socket; -EAGAIN if there is none. */
static int port_connect_stock(struct sandbox *s, unsigned port, int *fd)
{
	if (s->ports.stocked == 0)
		return -EAGAIN;
	*fd = s->ports.stock[--s->ports.stocked];
	int r = port_connect_socket(*fd, port, 4);
	if (r != 0 && r != -EINPROGRESS)
		close(take_fd(fd));
	port_refill(s);
	return r;
}

static struct port_call *port_call_new(
	struct sandbox *s, unsigned port, port_connected_fn *connected, void *arg)
{
	struct port_call *c = mem_new(sizeof *c);
	*c = (struct port_call){.sandbox = s,
		.state = PORT_ASLEEP,
		.port = port,
		.version = 4,
		.fd = -1,
		.timer = mem_new(sizeof *c->timer),
		.connected = connected,
		.arg = arg};
	uv_timer_init(s->box->loop, c->timer);
	c->timer->data = c;
	uv_timer_start(c->timer, port_call_late, CONNECT_MS, 0);
	DL_APPEND(s->ports.calls, c);
	s->ports.count++;
	sandbox_execution_began(s);
	return c;
}

int port_connect(struct sandbox *s, unsigned port, port_connected_fn *connected, void *arg,
	struct port_try *ret, struct error *e)
{
	autoclose int fd = -1;
	*ret = (struct port_try){0};
	if (s->ports.count >= CALLS_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"%u connections to ports of the sandbox are being made, the most that is allowed",
			s->ports.count);
	if (sandbox_wake(s, e) < 0)
		return -1;
	port_drop_spares(s, port);
	bool asleep = port_sandbox_sleeps(s);
	int r = asleep ? -EAGAIN : port_connect_stock(s, port, &fd);
	if (r == 0)
		ret->stream = port_open_stream(s, take_fd(&fd));
	if (ret->stream)
		return 0;
	bool asks = !asleep && r != -EINPROGRESS;
	unsigned version = r == -ECONNREFUSED ? 6 : 4;
	r = asks ? port_link_ask(s, version, 1) : 0;
	if (r < 0)
		return error_set(e, ERROR_UNAVAILABLE, "the sandbox's init cannot be reached: %s",
			strerror(-r));
	struct port_call *c = ret->call = port_call_new(s, port, connected, arg);
	c->version = version;
	if (asks)
		c->state = PORT_ASKING;
	else if (!asleep)
		port_call_wait(c, take_fd(&fd));
	return 0;
}

void port_begin_waiting(struct sandbox *s)
{
	s->ports.waiting++;
}

void port_end_waiting(struct sandbox *s)
{
	s->ports.waiting--;
}

void port_note_traffic(struct sandbox *s)
{
	s->last_active_ms = lease_now_ms(s->box);
}

/* ---- the sandbox's life ---- */

static void ports_awake(struct sandbox *s)
{
	struct port_call *c, *next;
	port_drop_spares(s, 0);
	DL_FOREACH_SAFE (s->ports.calls, c, next)
		if (c->state == PORT_ASLEEP)
			port_call_ask(c);
}

static void ports_refused(struct sandbox *s, const struct error *e)
{
	struct port_call *c, *next;
	DL_FOREACH_SAFE (s->ports.calls, c, next)
		if (c->state == PORT_ASLEEP)
			port_call_done(c, NULL, e);
}

static void ports_ended(struct sandbox *s, bool failed, const struct error *e)
{
	struct port_call *c, *next;
	struct error gone;
	(void)failed;
	port_link_close(s);
	port_drop_stock(s);
	port_drop_spares(s, 0);
	error_set(&gone, ERROR_UNAVAILABLE, "the sandbox has ended meanwhile");
	DL_FOREACH_SAFE (s->ports.calls, c, next)
		if (c->state != PORT_ASLEEP)
			port_call_done(c, NULL, e ? e : &gone);
}

static void ports_free(struct sandbox *s)
{
	struct port_call *c, *next;
	DL_FOREACH_SAFE (s->ports.calls, c, next)
		if (!c->connected)
			port_call_free(c);
	port_drop_stock(s);
	port_drop_spares(s, 0);
	port_link_close(s);
}

const struct sandbox_part port_part = {
	.ended = ports_ended, .awake = ports_awake, .refused = ports_refused, .free = ports_free};
