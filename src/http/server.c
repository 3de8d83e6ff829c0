/*
 * The server: accepts connections up to a limit, keeps the list of them, and closes in order.
 *
 * We accept by ourselves instead of through uv_listen, for two reasons: the listening socket stays
 * the caller's, and when accept fails for want of descriptors or memory we wait a moment, where
 * libuv would try again at once.
 *
 * The process must ignore SIGPIPE; libuv writes with write(2).
 */
#include "http/server.h"
#include "http/tls.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/log.h"

#define ACCEPT_PAUSE_MS 100
/* At one turn of the loop, so that a flood of connections cannot starve the requests. */
#define ACCEPT_BATCH 32

static void set_options(int listen_fd);
static void on_acceptable(uv_poll_t *poll, int status, int events);
static void on_pause_over(uv_timer_t *timer);
static void on_grace_over(uv_timer_t *timer);
static void http_server_on_closed(uv_handle_t *handle);
static void http_server_admit(
	struct http_server *s, int fd, const struct sockaddr_storage *address);
static void pause_accepting(struct http_server *s, int error);
static void http_server_forget(struct http_connection *c);
static void close_if_empty(struct http_server *s);

int http_server_open(struct http_server **ret, uv_loop_t *loop, int listen_fd,
	const struct http_limits *limits, const struct http_mount *mounts, size_t mount_count)
{
	autofree struct http_server *s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	int r = http_router_create(&s->router, mounts, mount_count);
	if (r < 0)
		return r;
	r = uv_poll_init(loop, &s->accept_poll, listen_fd);
	if (r < 0) {
		http_router_destroy(s->router);
		return r;
	}
	uv_timer_init(loop, &s->accept_pause);
	uv_timer_init(loop, &s->grace);
	uv_idle_init(loop, &s->waker);
	s->accept_poll.data = s->accept_pause.data = s->grace.data = s->waker.data = s;
	s->handles_open = 4;
	s->loop = loop;
	s->listen_fd = listen_fd;
	s->limits = *limits;
	s->forget = http_server_forget;
	s->known = http_slots_know;
	s->left = http_slots_leave;
	set_options(listen_fd);
	uv_poll_start(&s->accept_poll, UV_READABLE, on_acceptable);
	*ret = take_ptr(s);
	return 0;
}

/*
 * Connections inherit these, which spares each of them the calls: no delay for small answers, and
 * probes, so that a vanished client is noticed.
 */
static void set_options(int listen_fd)
{
	static const struct {
		int level, name, value;
	} options[] = {{IPPROTO_TCP, TCP_NODELAY, 1}, {SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, 60}, {IPPROTO_TCP, TCP_KEEPINTVL, 1},
		{IPPROTO_TCP, TCP_KEEPCNT, 10}};
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		setsockopt(listen_fd, options[i].level, options[i].name, &options[i].value,
			sizeof options[i].value);
}

void http_server_on_head(struct http_server *s, void (*addressed)(struct http_request *req))
{
	s->addressed = addressed;
}

void http_server_on_account(struct http_server *s,
	const char *(*account_of)(void *arg, const struct http_request *req), void *arg)
{
	s->account_of = account_of;
	s->account_arg = arg;
}

/* ---- accepting ---- */

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	struct http_server *s = poll->data;
	for (int i = 0; i < ACCEPT_BATCH && !s->closing; i++) {
		struct sockaddr_storage address = {0};
		socklen_t size = sizeof address;
		int fd = accept4(s->listen_fd, (struct sockaddr *)&address, &size,
			SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			s->starved = false;
			http_server_admit(s, fd, &address);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			pause_accepting(s, errno);
			return;
		}
	}
}

static void http_server_admit(struct http_server *s, int fd, const struct sockaddr_storage *address)
{
	struct http_peer *peer = http_peer_count(s, address);
	bool has_slot = http_slots_make(s, peer);
	uint64_t turned_away = s->counters.connections_open - s->entered;
	bool is_open = has_slot || turned_away < s->limits.refused;
	struct http_connection *c = is_open ? http_connection_open(s, fd) : NULL;
	struct address_port from;
	if (c && address_from_socket(address, &from)) {
		c->from = from.address;
		c->has_from = true;
	}
	if (c && has_slot) {
		http_slots_enter(c, peer);
		return;
	}
	http_peer_drop(s, peer);
	if (!is_open)
		close(fd);
	if (!c)
		return;
	struct error e;
	error_set(&e, ERROR_UNAVAILABLE, "there are too many connections");
	http_connection_refuse(c, &e);
}

static void pause_accepting(struct http_server *s, int error)
{
	if (!s->starved)
		log_warn("cannot accept connections", "error", strerror(error));
	s->starved = true;
	uv_poll_stop(&s->accept_poll);
	uv_timer_start(&s->accept_pause, on_pause_over, ACCEPT_PAUSE_MS, 0);
}

static void on_pause_over(uv_timer_t *timer)
{
	struct http_server *s = timer->data;
	uv_poll_start(&s->accept_poll, UV_READABLE, on_acceptable);
}

/* ---- cutting ---- */

void http_server_cut(
	struct http_server *s, bool (*is_meant)(void *arg, const void *principal), void *arg)
{
	struct http_connection *c;
	DL_FOREACH (s->connections, c) {
		const struct http_request *req = &c->request;
		if (c->phase < HTTP_PHASE_BODY || c->phase > HTTP_PHASE_FLUSHING ||
			!req->principal || http_needed_scope(req) == HTTP_SCOPE_ADMIN ||
			!is_meant(arg, req->principal))
			continue;
		c->cut = true;
		http_wake(c);
	}
}

/* ---- closing ---- */

void http_server_close(
	struct http_server *s, uint64_t grace_ms, void (*closed)(void *arg), void *arg)
{
	struct http_connection *c, *next;
	s->closing = true;
	s->closed = closed;
	s->closed_arg = arg;
	uv_close((uv_handle_t *)&s->accept_poll, http_server_on_closed);
	uv_close((uv_handle_t *)&s->accept_pause, http_server_on_closed);
	uv_timer_start(&s->grace, on_grace_over, grace_ms, 0);
	DL_FOREACH_SAFE (s->connections, c, next) {
		if (c->phase == HTTP_PHASE_HEAD)
			http_connection_close(c);
	}
	close_if_empty(s);
}

static void on_grace_over(uv_timer_t *timer)
{
	struct http_server *s = timer->data;
	struct http_connection *c, *next;
	DL_FOREACH_SAFE (s->connections, c, next) {
		http_connection_lose(c);
	}
}

static void http_server_forget(struct http_connection *c)
{
	struct http_server *s = c->server;
	DL_DELETE(s->connections, c);
	s->counters.connections_open--;
	close_if_empty(s);
}

static void close_if_empty(struct http_server *s)
{
	if (!s->closing || s->connections || uv_is_closing((uv_handle_t *)&s->grace))
		return;
	uv_close((uv_handle_t *)&s->grace, http_server_on_closed);
	uv_close((uv_handle_t *)&s->waker, http_server_on_closed);
}

static void http_server_on_closed(uv_handle_t *handle)
{
	struct http_server *s = handle->data;
	if (--s->handles_open > 0)
		return;
	http_router_destroy(s->router);
	http_tls_context_destroy(s->tls);
	if (s->closed)
		s->closed(s->closed_arg);
	free(s);
}

void http_server_counters(const struct http_server *s, struct http_counters *out)
{
	*out = s->counters;
}
