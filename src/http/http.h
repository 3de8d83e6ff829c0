/*
 * The HTTP/1.1 server as its users see it: routes, requests, responses.
 *
 * A route's handler runs once the head and the whole body (bounded by the route) have arrived. It
 * answers with exactly one of http_respond, http_respond_error or http_stream_begin, now or later,
 * and does not touch the request after the answer is complete.
 *
 * A route that `streams_body` has its handler run right after the head. The handler takes the body
 * by http_body_stream, now or later, piece by piece; until then, and while it is paused, nothing is
 * read and the client waits. It may answer before the body has come to its end, which ends the
 * connection after the answer, and it may stream its answer while the body still comes.
 *
 * Until then the client may go away; closing its sending side counts as that. One callback tells
 * the handler, and afterwards the request must not be touched: the generator's `stop` once the
 * answer is streaming; else the sink's `abort` while the body has not been told to its end; else
 * what http_on_abort has set. If it has set none, the request stays until it is answered, and the
 * answer is dropped: that suits work which is short and cannot be cancelled.
 *
 * A streamed response is a generator: the server calls `proceed` whenever it can take more bytes,
 * the generator answers with at most one http_stream_write (now or later), and backpressure falls
 * out.
 *
 * The abort callback, `proceed`, `stop` and the sink's functions are called from the loop, never
 * inside a call of the handler's. The process must ignore SIGPIPE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/address.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"

struct json_writer;

enum http_method {
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_PATCH,
	HTTP_DELETE,
	HTTP_OPTIONS,
	HTTP_ANY /* of a route: every method, also those that are not listed here */
};

/* The scope of a key that a route requires. Each includes those before it. */
enum http_scope {
	HTTP_SCOPE_BY_METHOD, /* of a route: READ for GET, USE for all others */
	HTTP_SCOPE_READ,      /* looking, and streams of output */
	HTTP_SCOPE_USE,       /* everything that a tenant has */
	HTTP_SCOPE_ADMIN      /* keys */
};

struct cJSON;
struct http_request;
struct http_server;

struct http_route {
	enum http_method method;
	/*
	 * "/v1/sandboxes/{id}/exec": {name} stands for one segment; a literal one is preferred.
	 * At the end {name*} stands for the rest of the path, decoded, with its slashes: one
	 * segment or more, none of them "." or ".." or empty but for the last. And {name**} stands
	 * for the rest of the target as it was sent, unchecked, query included: for those who pass
	 * it on.
	 */
	const char *pattern;
	void (*handler)(struct http_request *req);
	uint64_t body_limit; /* in bytes; 0: a body is refused */
	bool streams_body;   /* the handler runs before the body */
	enum http_scope scope;
};

/* An error as the client gets it. The server owns the body afterwards. */
struct http_error_answer {
	int status;       /* preset from the error's code */
	const char *type; /* set beforehand to application/json */
	struct buf body;
};

/*
 * A table of routes with what they share. `admit` runs after the head and before the body is read:
 * it answers 0, or fills *e and the request ends there. `ctx` is what http_ctx returns.
 *
 * A mount with `claims` is asked about every request, by its headers, before the path decides. What
 * it claims goes to the mounts that claim it and no others, and it sees nothing else. The same
 * table may be mounted several times.
 */
struct http_mount {
	const struct http_route *routes;
	size_t route_count;
	int (*admit)(struct http_request *req, struct error *e); /* NULL: open to everyone */
	void *ctx;
	const char
		*prefix; /* in front of each pattern, such as "/e2b" or "/agents/{id}"; or NULL */
	/*
	 * The claims that hold for a request, as bits; asked once for all mounts that share it.
	 * NULL: the path alone decides.
	 */
	unsigned (*claims)(const struct http_request *req);
	unsigned claim; /* the bit that this mount is for */
	/*
	 * For every error below the prefix or of a claimed request, whether its handler answers it
	 * by http_respond_error or the server does (404, 405, 413, not admitted). It may add
	 * headers. NULL: the server's own form.
	 */
	void (*encode_error)(
		struct http_request *req, const struct error *e, struct http_error_answer *answer);
	/*
	 * A browser may pass on what pages of any origin ask (CORS), never with its cookies: for
	 * mounts that let nobody in without a key or a token, which the page must know.
	 */
	bool any_origin;
	/* Called before `admit`: 0, or *e and the request ends there. NULL: no guard. */
	int (*guard)(const struct http_request *req, struct error *e);
};

struct http_limits {
	unsigned connections;      /* open at once; the next one is answered 503 and closed */
	unsigned refused;          /* more of them that are told so; the rest are just closed */
	unsigned known_places;     /* of `connections`: for clients that have shown a key */
	unsigned per_address;      /* of one address, of IPv6 one /64; 0: as many as there are */
	bool counts_loopback;      /* ... of loopback, too, where proxies are */
	uint64_t memory;           /* for bodies and answers of all requests; 0: no limit */
	uint64_t account_memory;   /* of one account, see http_server_on_account */
	uint64_t first_timeout_ms; /* from the connection to its first byte */
	uint64_t head_timeout_ms;  /* from the first byte of a head to its end */
	uint64_t body_timeout_ms;  /* without a byte of body, or of response taken by the client */
	uint64_t idle_timeout_ms;  /* between two requests */
	uint64_t
		websocket_ping_ms; /* how often WebSockets are asked for a sign of life; 0: never */
};

/* listen_fd stays the caller's. The mounts are borrowed until http_server_close's callback. */
int http_server_open(struct http_server **ret, uv_loop_t *loop, int listen_fd,
	const struct http_limits *limits, const struct http_mount *mounts, size_t mount_count);
struct http_tls_context;
/*
 * Connections that begin with TLS get this certificate from now on; plain ones are for loopback
 * only. Takes the context.
 */
void http_server_set_tls(struct http_server *s, struct http_tls_context *context);
/* Whether the request came by TLS. */
bool http_is_secure(const struct http_request *req);
/* Calls `addressed` once for each request, after its head and before its route is looked for. */
void http_server_on_head(struct http_server *s, void (*addressed)(struct http_request *req));
/* Asks whose memory an admitted request takes. NULL: that of everybody who has no account. */
void http_server_on_account(struct http_server *s,
	const char *(*account_of)(void *arg, const struct http_request *req), void *arg);
/*
 * Stop accepting, finish what is being answered for at most grace_ms, abort the rest, then call
 * closed and free. Requests whose handlers did not ask about aborts are waited for.
 */
void http_server_close(
	struct http_server *s, uint64_t grace_ms, void (*closed)(void *arg), void *arg);

/*
 * Ends every request of the principals that are meant, from the loop, as if its client had left: an
 * answer that has not begun is a 401. Those that need HTTP_SCOPE_ADMIN go on: they are short, and
 * one of them may be what this is called for.
 */
void http_server_cut(
	struct http_server *s, bool (*is_meant)(void *arg, const void *principal), void *arg);

struct http_counters {
	uint64_t connections_open;
	uint64_t connections_total;
	uint64_t connections_evicted; /* without a key, to make room */
	uint64_t requests_total;
	uint64_t requests_unaffordable; /* refused because there was no memory for them */
	uint64_t responses_by_class[6]; /* [2] counts 2xx, and so on */
};
void http_server_counters(const struct http_server *s, struct http_counters *out);

/* ---- the request; every pointer lives as long as the request ---- */

void *http_ctx(const struct http_request *req);
enum http_method http_method(const struct http_request *req); /* HTTP_ANY: http_method_text */
const char *http_method_text(const struct http_request *req); /* as sent */
const char *http_request_id(const struct http_request *req);
const char *http_target(const struct http_request *req);                  /* raw, as sent */
const char *http_param(const struct http_request *req, const char *name); /* decoded */
const char *http_query(
	const struct http_request *req, const char *name); /* decoded; NULL: absent */
const char *http_header(const struct http_request *req, const char *name); /* first; case-blind */
/* Every header in order; false ends. */
bool http_header_at(
	const struct http_request *req, size_t index, const char **name, const char **value);
/* Whether a header that is a list, such as Connection, has this token in any case. */
bool http_header_has_token(const struct http_request *req, const char *name, const char *token);
/* A browser's question whether a page may send a request with these headers; see any_origin. */
bool http_is_preflight(const struct http_request *req);
/* Whether the body's Content-Type is this one, whatever its parameters. */
bool http_has_type(const struct http_request *req, const char *type);
const char *http_body(const struct http_request *req, size_t *len);
/*
 * Parses the body, once: one of more than 1 MiB has been parsed by a thread, and its text is gone
 * afterwards. *ret is the caller's.
 */
int http_json(struct http_request *req, struct cJSON **ret, struct error *e);
/* Returns the announced length of the body; 0: no body, -1: not known before its end. */
int64_t http_content_length(const struct http_request *req);
/* Every query pair in order; false ends. For filters such as metadata.KEY. */
bool http_query_at(
	const struct http_request *req, size_t index, const char **name, const char **value);
/* Zeroed memory that goes with the request. */
/* Where the connection comes from: the client, or a proxy. False: not known. */
bool http_client_address(const struct http_request *req, struct address *ret);
void *http_alloc(struct http_request *req, size_t size);
/* Copies the text into memory of the request; NULL stays NULL. */
char *http_copy(struct http_request *req, const char *text);
/* A number of the client's address, of IPv6 of its network: the same one for the same client. */
uint64_t http_client_network(const struct http_request *req);
/*
 * The sandbox and port that a request is addressed to, if not to the server itself. Set by
 * http_server_on_head's function, or by admit.
 */
struct http_destination {
	unsigned port;
	char id[ID_SIZE]; /* "": no sandbox can have the name */
	char name[64];    /* of the sandbox, as the client wrote it, cut */
	bool reserved;    /* the port is one of a dialect's own services */
};
void http_set_destination(struct http_request *req, const struct http_destination *destination);
/* NULL: the request is for the server itself. */
const struct http_destination *http_destination(const struct http_request *req);
/* Returns the scope that a route needs; never HTTP_SCOPE_BY_METHOD. */
enum http_scope http_route_scope(const struct http_route *route);
/*
 * Returns the scope that the request's route needs; a route of any method goes by the one that was
 * sent.
 */
enum http_scope http_needed_scope(const struct http_request *req);
/* Attaches the caller's identity, as admit found it, for the handlers. */
void http_set_principal(struct http_request *req, void *principal);
void *http_principal(const struct http_request *req);

/* ---- the body as a stream, for routes that ask for it ---- */

struct http_body_sink {
	/* The bytes are the server's, for the time of the call; at most 256 KiB, never none. */
	void (*data)(void *arg, const char *data, size_t len);
	/* The body is complete. */
	void (*end)(void *arg);
	/*
	 * The body will not be complete: the client left, stalled, broke the rules or passed the
	 * limit. The server answers if it still can; the request must not be touched any more.
	 */
	void (*abort)(void *arg);
	void *arg;
};
/* Once per request. An empty body is told by `end` alone. */
void http_body_stream(struct http_request *req, const struct http_body_sink *sink);
/*
 * Pauses the body: until http_body_resume only the sink's `abort` may be called, and the client's
 * deadline does not run.
 */
void http_body_pause(struct http_request *req);
void http_body_resume(struct http_request *req);
/*
 * Inside of `data`: the last n of its bytes are not taken. They come again: after a resume, if the
 * sink is paused by then.
 */
void http_body_unread(struct http_request *req, size_t n);

/* ---- the response ---- */

void http_add_header(struct http_request *req, const char *name, const char *value);
/* Takes the content of *body, leaving it empty. A 204 has no body and no type. */
void http_respond(struct http_request *req, int status, const char *type, struct buf *body);
/*
 * {"error":{"code","message","field"?,"requestId"?}}, or what the mount makes of it. A 500 is
 * logged with the request's id.
 */
void http_respond_error(struct http_request *req, const struct error *e);
/* The member "error" of that. request_id: NULL for none. */
void http_put_error(struct json_writer *w, const struct error *e, const char *request_id);

void http_on_abort(struct http_request *req, void (*aborted)(void *arg), void *arg);

struct http_generator {
	void (*proceed)(void *arg);
	/* The client went away, does not read, wanted the head only, or has all that was announced.
	 */
	void (*stop)(void *arg);
	void *arg;
};
void http_stream_begin(struct http_request *req, int status, const char *type,
	const struct http_generator *generator);
/* With its length announced: a write beyond it is cut off and ends it, an end before it aborts. */
void http_stream_begin_sized(struct http_request *req, int status, const char *type,
	uint64_t length, const struct http_generator *generator);
/*
 * Takes the content. One write at a time: the next one only after proceed. Large writes are cheap:
 * they go to the socket as they are. 256 KiB at a time keep a gigabyte moving.
 */
void http_stream_write(struct http_request *req, struct buf *data);
/*
 * Sends the text whenever the stream has been quiet for this long, so that no proxy takes it for
 * dead. The text stays the caller's. Not with an announced length.
 */
void http_stream_keepalive(struct http_request *req, const char *text, size_t len, uint64_t ms);
/* Ends the response; may follow a write directly. stop is not called any more. */
void http_stream_end(struct http_request *req);
/* Ends it so that the client sees it was cut short. stop is not called any more. */
void http_stream_abort(struct http_request *req);

/* ---- another protocol on the same connection ---- */

/* Whether the client asks for this one in a way that allows it: a GET of 1.1 without a body. */
bool http_wants_upgrade(const struct http_request *req, const char *protocol);
/*
 * Answers 101, if http_wants_upgrade says so. From then on bytes go both ways as they are: what the
 * client sends goes to the sink, whose `end` is the client's FIN; what is sent and how it ends is
 * as with any stream. `stop` tells that the client is gone; `abort` is not used. WebSockets are in
 * http/websocket.h; this is for those who pass the bytes on.
 */
void http_upgrade(struct http_request *req, const char *protocol, const struct http_body_sink *sink,
	const struct http_generator *generator);
