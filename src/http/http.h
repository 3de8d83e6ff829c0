/*
 * The HTTP/1.1 server as its users see it: routes, requests, responses.
 *
 * A route's handler runs once the head and the whole body (bounded by the route) have arrived. It
 * answers with exactly one of http_respond, http_respond_error or http_stream_begin, now or later,
 * and does not touch the request after the answer is complete.
 *
 * Until then the client may go away; closing its sending side counts as that. If the handler has
 * asked by http_on_abort to be told, the callback runs (the generator's `stop`, once streaming),
 * and afterwards the request must not be touched. If it has not asked, the request stays until it
 * is answered, and the answer is dropped: that suits work which is short and cannot be cancelled.
 *
 * A streamed response is a generator: the server calls `proceed` whenever it can take more bytes,
 * the generator answers with at most one http_stream_write (now or later), and backpressure falls
 * out.
 *
 * The abort callback, `proceed` and `stop` are called from the loop, never inside a call of the
 * handler's or the generator's. The process must ignore SIGPIPE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"

enum http_method {
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_PATCH,
	HTTP_DELETE,
	HTTP_OPTIONS
};

struct http_request;
struct http_server;

struct http_route {
	enum http_method method;
	/* "/v1/sandboxes/{id}/exec": {name} stands for one segment; a literal one is preferred. */
	const char *pattern;
	void (*handler)(struct http_request *req);
	uint64_t body_limit; /* in bytes; 0: a body is refused */
};

/*
 * A table of routes with what they share. `admit` runs after the head and before the body is read:
 * it answers 0, or fills *e and the request ends there. `ctx` is what http_ctx returns.
 */
struct http_mount {
	const struct http_route *routes;
	size_t route_count;
	int (*admit)(struct http_request *req, struct error *e); /* NULL: open to everyone */
	void *ctx;
};

struct http_limits {
	unsigned connections;     /* open at once; the next one is answered 503 and closed */
	uint64_t head_timeout_ms; /* from the first byte of a head to its end */
	uint64_t body_timeout_ms; /* without a byte of body, or of response taken by the client */
	uint64_t idle_timeout_ms; /* between two requests */
};

/* listen_fd stays the caller's. The mounts are borrowed until http_server_close's callback. */
int http_server_open(struct http_server **ret, uv_loop_t *loop, int listen_fd,
	const struct http_limits *limits, const struct http_mount *mounts, size_t mount_count);
/*
 * Stop accepting, finish what is being answered for at most grace_ms, abort the rest, then call
 * closed and free. Requests whose handlers did not ask about aborts are waited for.
 */
void http_server_close(
	struct http_server *s, uint64_t grace_ms, void (*closed)(void *arg), void *arg);

struct http_counters {
	uint64_t connections_open;
	uint64_t connections_total;
	uint64_t requests_total;
	uint64_t responses_by_class[6]; /* [2] counts 2xx, and so on */
};
void http_server_counters(const struct http_server *s, struct http_counters *out);

/* ---- the request; every pointer lives as long as the request ---- */

void *http_ctx(const struct http_request *req);
enum http_method http_method(const struct http_request *req);
const char *http_request_id(const struct http_request *req);
const char *http_target(const struct http_request *req);                  /* raw, as sent */
const char *http_param(const struct http_request *req, const char *name); /* decoded */
const char *http_query(
	const struct http_request *req, const char *name); /* decoded; NULL: absent */
const char *http_header(const struct http_request *req, const char *name); /* first; case-blind */
const char *http_body(const struct http_request *req, size_t *len);
/* Every query pair in order; false ends. For filters such as metadata.KEY. */
bool http_query_at(
	const struct http_request *req, size_t index, const char **name, const char **value);
/* Zeroed memory that goes with the request. NULL only when the machine is out of memory. */
void *http_alloc(struct http_request *req, size_t size);
/* What admit found out about the caller, for the handlers. */
void http_set_principal(struct http_request *req, void *principal);
void *http_principal(const struct http_request *req);

/* ---- the response ---- */

void http_add_header(struct http_request *req, const char *name, const char *value);
/* Takes the content of *body, leaving it empty. A 204 has no body and no type. */
void http_respond(struct http_request *req, int status, const char *type, struct buf *body);
/* {"error":{"code","message","field"?,"requestId"?}}; a 500 is logged with the request's id. */
void http_respond_error(struct http_request *req, const struct error *e);

void http_on_abort(struct http_request *req, void (*aborted)(void *arg), void *arg);

struct http_generator {
	void (*proceed)(void *arg);
	/* The client went away, does not read, or wanted the head only. */
	void (*stop)(void *arg);
	void *arg;
};
void http_stream_begin(struct http_request *req, int status, const char *type,
	const struct http_generator *generator);
/* Takes the content. One write at a time: the next one only after proceed. */
void http_stream_write(struct http_request *req, struct buf *data);
/* Ends the response; may follow a write directly. stop is not called any more. */
void http_stream_end(struct http_request *req);
/* Ends it so that the client sees it was cut short. stop is not called any more. */
void http_stream_abort(struct http_request *req);
