/*
 * Connections to the TCP ports that processes in a sandbox listen on.
 *
 * Init gives away unconnected sockets of the sandbox's network, and they are connected here: to
 * 127.0.0.1, then to ::1. Init never sees the bytes. What it sends is hostile: a descriptor that is
 * no unconnected TCP socket is closed, and the call fails.
 *
 * A sandbox that sleeps is woken for a call, if it wakes by itself.
 */
#pragma once

#include <uv.h>

#include "box/sandbox/sandbox.h"

struct port_call;

/*
 * Called once, unless the call is cancelled. The stream is of the heap, nobody reads it, and it is
 * the callee's; NULL: *e says why.
 */
typedef void port_connected_fn(void *arg, uv_tcp_t *stream, const struct error *e);

/*
 * Counts a connection's descriptor for the sandbox's tenant, until port_let_go. Returns the tenant,
 * to be freed, or NULL with *e if it has too many.
 */
char *port_hold(struct sandbox *s, struct error *e);
void port_let_go(struct box *b, const char *tenant);
/* A connection that is there, or one that is being made. */
struct port_try {
	uv_tcp_t *stream; /* NULL: `connected` will be called */
	struct port_call *call;
};

/* Returns 0, or a negative value with *e. If nothing listens there: ERROR_PORT_CLOSED. */
int port_connect(struct sandbox *s, unsigned port, port_connected_fn *connected, void *arg,
	struct port_try *ret, struct error *e);
void port_cancel(struct port_call *c);
void port_close(uv_tcp_t *stream);
/*
 * Takes a connection that has carried whole requests without bodies and their whole answers, for
 * the next one to this port.
 */
void port_put_spare(struct sandbox *s, unsigned port, uv_tcp_t *stream);
/*
 * Returns a spare connection, or NULL. The other side may close it at any time, so it is
 * only for what can be repeated.
 */
uv_tcp_t *port_take_spare(struct sandbox *s, unsigned port);
/* A request was given a connection; it is answered, or does not wait any longer. */
void port_begin_waiting(struct sandbox *s);
void port_end_waiting(struct sandbox *s);
/* Bytes have passed: the sandbox is not idle. */
void port_note_traffic(struct sandbox *s);
