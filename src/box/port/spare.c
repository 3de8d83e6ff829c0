/*
 * Spare connections: they have carried a request and can carry another one, for a few seconds.
 *
 * They are the sandbox's, so nobody else's requests meet on them, and nobody watches them: whether
 * one is still open is looked at when it is taken. One is kept only while no request to the sandbox
 * waits for its answer, and goes before a connection is made beside it: a server that serves one
 * connection after the other would never come to the one that waits.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <utlist.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "box/port/port_link.h"
#include "box/sandbox/pause.h"

#define SPARES_MAX 4 /* in a sandbox */
#define SPARE_MS   4000

struct port_spare {
	uv_tcp_t *stream;
	unsigned port;
	uint64_t until; /* in the loop's time */
	struct port_spare *prev, *next;
};

static void spare_pass_time(uv_timer_t *timer);

void port_close(uv_tcp_t *stream)
{
	if (stream)
		uv_close((uv_handle_t *)stream, (uv_close_cb)free);
}

/* Returns the stream, which is the caller's. */
static uv_tcp_t *spare_remove(struct sandbox *s, struct port_spare *k)
{
	uv_tcp_t *stream = k->stream;
	DL_DELETE(s->ports.spares, k);
	s->ports.spare_count--;
	tenant_count_descriptors(s->box, s->tenant, -1);
	free(k);
	return stream;
}

void port_drop_spares(struct sandbox *s, unsigned port)
{
	struct port_spare *k, *next;
	DL_FOREACH_SAFE (s->ports.spares, k, next)
		if (port == 0 || k->port == port)
			port_close(spare_remove(s, k));
	if (!s->ports.spares && s->ports.timer)
		uv_close((uv_handle_t *)take_ptr(s->ports.timer), (uv_close_cb)free);
}

/* The oldest is the first of the list, and times out first. */
static void spare_wait(struct sandbox *s)
{
	uint64_t now = uv_now(s->box->loop), until = s->ports.spares->until;
	uv_timer_start(s->ports.timer, spare_pass_time, until > now ? until - now : 0, 0);
}

static void spare_pass_time(uv_timer_t *timer)
{
	struct sandbox *s = timer->data;
	struct port_spare *k, *next;
	DL_FOREACH_SAFE (s->ports.spares, k, next)
		if (k->until <= uv_now(s->box->loop))
			port_close(spare_remove(s, k));
	if (s->ports.spares)
		spare_wait(s);
	else
		port_drop_spares(s, 0);
}

void port_put_spare(struct sandbox *s, unsigned port, uv_tcp_t *stream)
{
	struct error e;
	if (s->ports.waiting > 0 || s->ending.doomed || port_sandbox_sleeps(s) ||
		tenant_check_descriptor(s->box, s->tenant, &e) < 0) {
		port_close(stream);
		return;
	}
	if (s->ports.spare_count >= SPARES_MAX)
		port_close(spare_remove(s, s->ports.spares));
	struct port_spare *k = mem_new(sizeof *k);
	*k = (struct port_spare){
		.stream = stream, .port = port, .until = uv_now(s->box->loop) + SPARE_MS};
	DL_APPEND(s->ports.spares, k);
	s->ports.spare_count++;
	tenant_count_descriptors(s->box, s->tenant, 1);
	if (s->ports.timer)
		return;
	s->ports.timer = mem_new(sizeof *s->ports.timer);
	uv_timer_init(s->box->loop, s->ports.timer);
	s->ports.timer->data = s;
	spare_wait(s);
}

/* Nothing may have come since its last answer, neither bytes nor an end. */
static bool spare_is_open(const uv_tcp_t *stream)
{
	uv_os_fd_t fd;
	char byte;
	return uv_fileno((const uv_handle_t *)stream, &fd) == 0 &&
	       recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

uv_tcp_t *port_take_spare(struct sandbox *s, unsigned port)
{
	struct port_spare *k, *next;
	struct error e;
	if (!s->ports.spares || port_sandbox_sleeps(s) || sandbox_wake(s, &e) < 0)
		return NULL;
	DL_FOREACH_SAFE (s->ports.spares, k, next) {
		if (k->port != port)
			continue;
		uv_tcp_t *stream = spare_remove(s, k);
		if (spare_is_open(stream))
			return stream;
		port_close(stream);
	}
	return NULL;
}
