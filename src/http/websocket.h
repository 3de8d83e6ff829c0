/*
 * WebSockets (RFC 6455), the server's side.
 *
 * A route's handler answers a GET by http_upgrade_websocket and gets a socket, or has answered with
 * an error. From then on messages come by `message`, whole, text checked to be UTF-8; pings are
 * answered and sent here. Nothing is compressed: no extension is agreed to.
 *
 * The socket is the handler's until it calls websocket_close, or until `closed` runs, whichever is
 * first; exactly one of the two happens. Afterwards it must not be touched. All events come from
 * the loop, never inside a call of the user's.
 *
 * The Origin is not looked at. A browser sends cookies to whomever a page names, but no key of ours
 * is ever a cookie: who connects has proved by a header or the URL that it knows one. A route that
 * trusts something else must look at Origin itself.
 */
#pragma once

#include <stddef.h>

#include "http/http.h"

/* Queued for a client that does not read; a message is taken while there is less than this. */
#define WEBSOCKET_QUEUE_MAX  (1u << 20)
#define WEBSOCKET_REASON_MAX 123

enum websocket_kind {
	WEBSOCKET_TEXT,
	WEBSOCKET_BINARY
};

enum websocket_code {
	WEBSOCKET_NORMAL = 1000,
	WEBSOCKET_GOING_AWAY = 1001,
	WEBSOCKET_PROTOCOL_ERROR = 1002,
	WEBSOCKET_NO_CODE = 1005,  /* the client gave none */
	WEBSOCKET_ABNORMAL = 1006, /* the client vanished without a word */
	WEBSOCKET_POLICY = 1008,
	WEBSOCKET_TOO_BIG = 1009,
	WEBSOCKET_INTERNAL = 1011,
	WEBSOCKET_TRY_LATER = 1013
};

struct websocket;

struct websocket_events {
	/* The bytes are the server's, for the time of the call. */
	void (*message)(void *arg, enum websocket_kind kind, const char *data, size_t len);
	/* Everything that was sent has been taken by the kernel. Or NULL. */
	void (*writable)(void *arg);
	/* The client closed, broke the rules or vanished; told once. The reason may be "". */
	void (*closed)(void *arg, unsigned code, const char *reason);
	size_t message_max; /* longer messages from the client end it with 1009 */
	const char *const
		*protocols; /* that may be agreed on, the best first, ending in NULL; or NULL */
};

/*
 * Negative: the request has been answered with an error. Headers that were added go with the 101.
 * The events are borrowed for the socket's life.
 */
int http_upgrade_websocket(struct http_request *req, const struct websocket_events *events,
	void *arg, struct websocket **ret);
/* Returns the protocol agreed on, or NULL. */
const char *websocket_protocol(const struct websocket *ws);

/* Copies. -EAGAIN: too much is queued, try again after `writable`; or -ENOMEM. */
int websocket_send(struct websocket *ws, enum websocket_kind kind, const void *data, size_t len);
/* Bytes that the kernel has not taken yet. */
size_t websocket_queued(const struct websocket *ws);
/* Whether so much is queued, or anything while the memory for answers is used up. */
bool websocket_is_full(const struct websocket *ws, size_t max);
/* Closes after all queued messages. The reason is cut to WEBSOCKET_REASON_MAX bytes; or NULL. */
void websocket_close(struct websocket *ws, unsigned code, const char *reason);

/* Stops reading, so that the client is slowed. A few messages, 4 KiB at most, may still come. */
void websocket_pause(struct websocket *ws);
void websocket_resume(struct websocket *ws);
