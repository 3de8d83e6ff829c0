/*
 * What the files of this room share about one connection and the request it carries. Users of the
 * server see only http.h.
 *
 * A connection carries one request at a time, so the request is part of it. The phases, in order:
 *
 *   HEAD ──▶ BODY ──▶ HANDLING ──▶ FLUSHING ──▶ HEAD, or LINGERING ──▶ CLOSED
 *     └─────────────────▶┘└──▶ STREAMING ──┘
 *
 * and from each of them straight to CLOSED when the client goes away or a deadline passes. After
 * CLOSED the memory stays until libuv has given back both handles, so that code which is on the
 * stack when a connection ends may still look at its phase.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/id.h"
#include "http/http.h"
#include "http/parser.h"
#include "http/router.h"
#include "http/target.h"

enum http_phase {
	HTTP_PHASE_HEAD,      /* waiting for a head, or in the middle of one */
	HTTP_PHASE_BODY,      /* collecting it for the handler */
	HTTP_PHASE_HANDLING,  /* the handler owes an answer */
	HTTP_PHASE_STREAMING, /* the generator owes more of it, or its end */
	HTTP_PHASE_FLUSHING,  /* the answer is complete, but the client has not taken it all */
	HTTP_PHASE_LINGERING, /* our FIN is sent; input is discarded */
	HTTP_PHASE_CLOSED
};

/* The state of the request's body, which may still arrive while the request is answered. */
enum http_body_state {
	HTTP_BODY_TOLD, /* nothing more to take or to tell; so without a body, too */
	HTTP_BODY_COMING,
	HTTP_BODY_COMPLETE /* taken in full; its end has not been told */
};

/* How the bytes of a connection go. */
enum http_transport {
	HTTP_UNDECIDED, /* its first byte has not come */
	HTTP_PLAIN,
	HTTP_SECURE,
	HTTP_PLAIN_REFUSED /* plain, and not from here */
};

#define HTTP_PIECES_MAX 5 /* of one send */

struct http_block; /* of request memory, beyond the part that is always there */

struct http_request {
	struct http_connection *connection;
	char id[ID_SIZE + 21]; /* the connection's id, "-", the request's number on it */
	int64_t started_us;    /* when its head was complete, or refused; 0 before */
	struct http_head head;
	struct http_target target;
	const struct http_mount *mount;
	const struct http_route *route;
	const char *pattern; /* of the route, with its mount's prefix */
	const char *rest;    /* the value of {name*} or {name**} */
	unsigned allowed;    /* the methods that the path has, as bits */
	void *principal;
	struct http_destination destination;
	bool has_destination;
	struct buf body;
	struct http_parsing *parsing; /* under way, or ... */
	bool is_parsed;               /* ... done; whoever wants it calls http_json */
	struct http_body_sink sink;   /* without `data`: the handler has not asked for the body */

	void (*aborted)(void *arg);
	void *aborted_arg;
	struct http_generator generator;

	int status;
	struct buf fields; /* headers added by http_add_header */

	struct http_block *blocks;
	size_t arena_used;
	_Alignas(max_align_t) char arena[2048];
};

struct http_connection {
	struct http_server *server;
	struct http_connection *prev, *next; /* in the server's list */
	/* In the server's list of those to wake, if `woken`. */
	struct http_connection *wake_prev, *wake_next;
	/* In the server's list of strangers, if `stranger`. */
	struct http_connection *stranger_prev, *stranger_next;
	struct http_peer *peer; /* NULL: it is not counted */
	struct address from;    /* if has_from */
	bool has_from;
	bool entered;                 /* it has one of the slots (slots.c) */
	struct http_account *account; /* of the request, once it is admitted */
	size_t held_body, held_answer, held_queue;
	bool stranger;
	uv_tcp_t tcp;
	uv_timer_t timer;
	unsigned handles_open;
	enum http_phase phase;
	char id[ID_SIZE];
	uint64_t request_count;
	struct http_request request;

	bool processing; /* input is being processed; that loop also handles the next request */
	bool woken;
	bool lost; /* the client is gone, but the request's owner has not been told */
	bool cut;  /* the request is to end, because its principal has */
	bool eof;  /* the client has closed its side; pending output is still sent */

	/* Set by connection.c: called by wake.c and deadline.c. */
	void (*resume)(struct http_connection *c);
	void (*expire)(struct http_connection *c);
	/* Called by parsed.c: the handler can be called. */
	void (*parsed)(struct http_connection *c);

	uint64_t deadline;  /* in the loop's time */
	uint64_t timer_due; /* while the timer is active: never later than the deadline */

	bool reading;
	bool yielding;     /* has had its share of this turn of the loop */
	size_t turn_bytes; /* read at this turn without a break */
	struct buf in;     /* received and not taken yet; from the start of a head on, or of body */
	size_t in_used;    /* of that: taken by now */
	struct http_head_scan scan;
	enum http_body_state body_state;
	bool body_paused;
	struct http_chunks chunks;
	uint64_t body_left;   /* without chunks: how much of Content-Length is to come */
	uint64_t body_taken;  /* never above the route's limit */
	size_t piece_len;     /* of the piece that the sink has at the moment */
	size_t body_unread;   /* bytes of that piece that the sink left unread */
	uint64_t linger_left; /* how much more is thrown away */

	uv_write_t write;
	uv_write_cb written; /* set by connection.c: what is called when `write` is through */
	bool writing;        /* `write` is in flight; it borrows the buffers below */
	size_t write_left;   /* when the deadline was set */
	/* TLS: what is to be sent, first as it is, then as the socket gets it. */
	enum http_transport transport;
	struct http_tls *tls; /* NULL: none */
	uv_buf_t unsealed[HTTP_PIECES_MAX];
	unsigned unsealed_count;
	struct buf sealed;
	struct buf out_head;
	struct buf out_body;
	char chunk_line[24];

	/* while streaming: */
	bool upgraded;        /* to another protocol: bytes go as they are, both ways */
	bool sized;           /* the length was announced; otherwise it goes in chunks */
	uint64_t stream_left; /* of the announced length */
	bool overfull;        /* the generator has written more than that */
	bool asked;           /* proceed was called and no write has answered it yet */
	bool head_unsent;     /* out_head waits for company */
	bool chunk_unsent;    /* out_body waits for its turn */
	bool stream_ended;    /* the generator has said its last */
	const char *keepalive;
	size_t keepalive_len;
	uint64_t keepalive_ms; /* 0: a quiet stream stays quiet */
};

/* ---- connection.c ---- */

/* Takes the fd. NULL: there is no connection. */
struct http_connection *http_connection_open(struct http_server *server, int fd);
/* The body is there: calls the handler, or has the body parsed first. */
void http_connection_take_body(struct http_connection *c);
/* Calls the handler, which owes an answer from here on. */
void http_connection_handle(struct http_connection *c);
/* Answers a partly received request, or the connection itself, with an error; then closes. */
void http_connection_refuse(struct http_connection *c, const struct error *e);
/* The answer has been sent in full: goes on to the next request, or to the end. */
void http_connection_answered(struct http_connection *c);
/* Treats the client as gone and tells the request's owner. Only from the loop. */
void http_connection_lose(struct http_connection *c);
void http_connection_close(struct http_connection *c);
/* Closes in a way that the client cannot take for an end. */
void http_connection_reset(struct http_connection *c);

enum http_sent {
	HTTP_SENT,   /* the kernel has it all */
	HTTP_QUEUED, /* the rest goes out as the client takes it; the buffers stay borrowed */
	HTTP_BROKEN
};
enum http_sent http_connection_send(struct http_connection *c, uv_buf_t *bufs, unsigned count);

/* Sends a few bytes besides the answer. Returns false if the socket has no room for them. */
bool http_connection_put(struct http_connection *c, const char *data, size_t len);

/* ---- secure.c: of connections with TLS, but the first ---- */

/* Decides by the first byte; HTTP_SECURE has begun then. */
enum http_transport http_secure_begin(struct http_connection *c, const char *data);
int http_secure_receive(struct http_connection *c, const char *data, size_t len);
/* As http_tls_read. */
ssize_t http_secure_read(struct http_connection *c, char *out, size_t size);
/* As http_connection_send. The bytes stay borrowed until c->written and http_secure_go_on, which
 * sends the rest, are through. */
enum http_sent http_secure_send(struct http_connection *c, const uv_buf_t *bufs, unsigned count);
enum http_sent http_secure_go_on(struct http_connection *c);
bool http_secure_put(struct http_connection *c, const char *data, size_t len);
/* Tells the client that this was all. */
void http_secure_end(struct http_connection *c);

/* ---- wake.c ---- */

/* Has c->resume called at the next turn of the loop. */
void http_wake(struct http_connection *c);
/* Cancels http_wake. */
void http_let_sleep(struct http_connection *c);

/* ---- deadline.c ---- */

/* Has c->expire called in `ms` milliseconds; 0 sets no deadline. */
void http_set_deadline(struct http_connection *c, uint64_t ms);
/* Returns whether the client has received anything since the last call or write. */
bool http_client_reads(struct http_connection *c);
/* Returns the number of written bytes that the client has not received. */
size_t http_unread_by_client(const struct http_connection *c);

/* ---- body.c ---- */

/* The head has been admitted: collects the body and calls the handler, or the other way round. */
void http_body_begin(struct http_connection *c);
/* Returns whether body bytes can be consumed now. */
bool http_body_flows(const struct http_connection *c);
/* Returns whether the handler must be told when the body is cut short. */
bool http_body_has_listener(const struct http_connection *c);
size_t http_body_take(struct http_connection *c, const char *data, size_t len);
/* Tells the body's end if it is due. Only from the loop. */
void http_body_settle(struct http_connection *c);
/* The body is not worth waiting for: answers *e if that is still possible. Only from the loop. */
void http_body_fail(struct http_connection *c, const struct error *e);

/* From here on everything that comes goes to the sink. */
void http_body_begin_raw(struct http_connection *c, const struct http_body_sink *sink);

/* ---- request.c ---- */

void http_request_begin(struct http_connection *c);
/* Negative: *e is the answer, and where the request ends is not known. */
int http_request_parse(struct http_request *req, const char *head, size_t len, struct error *e);
/* Finds the route and asks for admission. Negative: *e is the answer. */
int http_request_route(struct http_request *req, struct error *e);
/* The methods that the path of a routed request has, as a header. */
void http_request_add_allow(struct http_request *req);
/* The mount that answers OPTIONS (options.c). */
extern const struct http_mount http_options;
void http_request_end(struct http_request *req);

/* ---- head.c ---- */

/* Writes the head without its body framing and the empty line. */
void http_put_head(struct http_request *req, int status, const char *type);
void http_put_field(struct buf *out, const char *name, const char *value);
void http_put_length(struct buf *out, uint64_t length);
bool http_has_no_body(int status);

/* ---- response.c ---- */

/* Called when the last of the answer has been handed over or queued. */
void http_answer_sent(struct http_connection *c, enum http_sent sent);

/* ---- stream.c ---- */

/* A streaming connection can take more. */
void http_stream_proceed(struct http_connection *c);
/* The socket has taken a write that was queued. */
void http_stream_written(struct http_connection *c);
/* A stream's deadline has passed without a write. */
void http_stream_quiet(struct http_connection *c);
