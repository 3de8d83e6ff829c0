/* The server as its connections see it. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "http/connection.h"
#include "http/http.h"
#include "http/slots.h"
#include "http/router.h"

#define HTTP_READ_SIZE   262144
#define HTTP_SEALED_SIZE 65536

struct http_server {
	uv_loop_t *loop;
	uv_poll_t accept_poll;
	uv_timer_t accept_pause;
	uv_idle_t waker;
	uv_timer_t grace;
	unsigned handles_open;
	int listen_fd;
	bool starved; /* the last accept failed; it has been logged */
	bool closing;
	void (*closed)(void *arg);
	void *closed_arg;

	struct http_limits limits;
	struct http_tls_context *tls; /* NULL: plain HTTP only */
	struct http_router *router;
	void (*addressed)(struct http_request *req); /* NULL: every request is for the server */
	struct http_connection *connections;
	/* slots.c: */
	struct http_connection *strangers; /* in the order in which they came */
	unsigned stranger_count, entered;
	struct http_peer *peers;
	/* budget.c: */
	struct http_account *accounts;
	size_t held;
	const char *(*account_of)(void *arg, const struct http_request *req);
	void *account_arg;
	/* Called when a connection's request is admitted, and when it is closed. */
	void (*known)(struct http_connection *c);
	void (*left)(struct http_connection *c);
	/* Called when a connection's handles are closed, before its memory is freed. */
	void (*forget)(struct http_connection *c);
	struct http_connection *woken; /* to be resumed at the next turn of the loop */
	unsigned woken_count;
	struct http_counters counters;
	/* Shared by all connections: libuv hands over each read before it starts the next. */
	char read_buffer[HTTP_READ_SIZE];
	char sealed_buffer[HTTP_SEALED_SIZE]; /* the same for what TLS decodes first */
};
