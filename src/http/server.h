/* The server as its connections see it. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "http/connection.h"
#include "http/http.h"
#include "http/router.h"

#define HTTP_READ_SIZE 262144

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
	struct http_router *router;
	void (*addressed)(struct http_request *req); /* NULL: every request is for the server */
	struct http_connection *connections;
	struct http_connection *woken; /* to be resumed at the next turn of the loop */
	unsigned woken_count;
	struct http_counters counters;
	/* Shared by all connections: libuv hands over each read before it starts the next. */
	char read_buffer[HTTP_READ_SIZE];
};

/* Has the connection resumed at the next turn of the loop, outside of whatever runs now. */
void http_server_wake(struct http_connection *c);
/* Takes that back. */
void http_server_let_sleep(struct http_connection *c);
/* The connection's handles are closed and its memory goes. */
void http_server_forget(struct http_connection *c);
