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

#include "box/sandbox/sandbox.h"

struct port_call;

/* Called once, unless the call is cancelled. fd is the callee's; -1: *e says why. */
typedef void port_connected_fn(void *arg, int fd, const struct error *e);

/*
 * Counts a connection's descriptor for the sandbox's tenant, until port_let_go. Returns the tenant,
 * to be freed, or NULL with *e if it has too many.
 */
char *port_hold(struct sandbox *s, struct error *e);
void port_let_go(struct box *b, const char *tenant);
/*
 * Returns 0 and a call, or a negative value with *e. If nothing listens there, the call's error is
 * ERROR_PORT_CLOSED.
 */
int port_connect(struct sandbox *s, unsigned port, port_connected_fn *connected, void *arg,
	struct port_call **ret, struct error *e);
void port_cancel(struct port_call *c);
/* Bytes have passed: the sandbox is not idle. */
void port_note_traffic(struct sandbox *s);
