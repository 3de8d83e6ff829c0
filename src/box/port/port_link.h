/*
 * The connection to a sandbox's init by which sockets are asked for. There is at most one for a
 * sandbox, made with the first question and kept; its answers come in the order of the questions.
 */
#pragma once

#include <uv.h>

#include "box/sandbox/object.h"
#include "box/port/part.h"

enum port_state {
	PORT_ASLEEP,    /* the sandbox is being woken */
	PORT_ASKING,    /* init owes a socket */
	PORT_CONNECTING /* the socket is being connected */
};

struct port_call {
	struct sandbox *sandbox;
	enum port_state state;
	unsigned port;
	unsigned version; /* of IP: 4, then 6 */
	unsigned tries;   /* how often a socket was asked for */
	int fd;           /* while it is being connected; else -1 */
	uv_poll_t *poll;  /* of fd */
	uv_timer_t *timer;
	port_connected_fn *connected; /* NULL: the socket is for the stock */
	void *arg;
	struct port_call *prev, *next; /* of the sandbox, in the order of their questions */
};

/* Asks for so many sockets. Returns 0 or -errno. */
int port_link_ask(struct sandbox *s, unsigned version, unsigned count);
/* Closes the connection; those that wait for an answer are the caller's. */
void port_link_close(struct sandbox *s);

/* ---- spare.c ---- */

/* Closes those of a port; 0: all. */
void port_drop_spares(struct sandbox *s, unsigned port);

/* ---- port.c ---- */

bool port_sandbox_sleeps(const struct sandbox *s);
/* Init has answered the oldest question: a socket, which is the callee's, or -errno. */
void port_socket_came(struct sandbox *s, int fd_or_error);
/* The connection is lost, and with it every question. */
void port_sockets_lost(struct sandbox *s);
