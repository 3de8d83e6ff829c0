/* One HTTP/1.1 request over its own TCP connection, and the response as it arrives. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "bunker.h"
#include "client/response.h"

struct transport_url {
	bool is_tls;
	char host[256]; /* without the brackets of an IPv6 address */
	char port[6];
	char authority[272]; /* as in the Host header */
	char prefix[256];    /* goes in front of every path; no slash at the end */
};

struct transport_request {
	const char *method;
	const char *target;
	const char *api_key; /* NULL: none is sent */
	const char *accept;
	const char *body; /* JSON; NULL: none */
	size_t body_len;
	/* Instead of body: one of any length, asked for until it gives 0; negative ends the call.
	 */
	bunker_read_fn *source;
	void *source_arg;
	const char *source_type;
	unsigned silence_s; /* give up after so long without a byte; 0: wait for ever */
};

int client_transport_parse_url(const char *text, struct transport_url *ret, struct bunker_error *e);

/*
 * Sends the request and feeds the body of the response to `body` until it is complete. When `body`
 * ends the exchange, the result is its value and *e is left as the callback made it.
 */
int client_transport_exchange(const struct transport_url *url,
	const struct transport_request *request, response_body_fn *body, void *body_arg,
	int *ret_status, struct bunker_error *e);

/* The parts of an exchange: a connected socket, all of some bytes, all of an answer. */
int client_transport_connect(const struct transport_url *url, struct bunker_error *e);
int client_transport_send(int fd, const char *data, size_t len, int flags);
int client_transport_receive(
	int fd, const struct transport_url *url, struct response *response, struct bunker_error *e);

/*
 * Asks for another protocol, "websocket" or "tcp". With status 101 *fd is connected, and what the
 * server has sent in that protocol is still to be read. An answer that refuses leaves its status
 * and body.
 */
int client_transport_upgrade(const struct transport_url *url, const char *target,
	const char *api_key, const char *protocol, int *fd, struct buf *refusal, int *status,
	struct bunker_error *e);
