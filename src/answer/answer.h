/*
 * The answer to one request that is carried out by one operation (op/op.h): the only place where a
 * client's going away, a client that reads slowly and a body that comes too fast are dealt with.
 *
 * A dialect makes an answer, fills its call, begins an operation and runs it. From then on its form
 * is asked: `put` turns each event into bytes of `out`, and may set status, length and headers
 * before the first byte has gone. It frees nothing, waits for nothing and is not called any more
 * when the client has gone.
 *
 * What is small is one response with its length; the head of what is large goes out with the first
 * 64 KiB. So an error that comes before that is an error status, and one that comes later cuts the
 * answer short, visibly.
 */
#pragma once

#include "http/http.h"
#include "op/op.h"

enum answer_pace {
	ANSWER_BULK,  /* in large pieces, the next one read while one is sent */
	ANSWER_LIVE,  /* what there is, at once; nothing is asked for that cannot be sent */
	ANSWER_WHOLE, /* one response */
};

#define ANSWER_UNKNOWN UINT64_MAX

struct answer;

enum answer_failure {
	ANSWER_ERROR, /* *e is told, perhaps in other words */
	ANSWER_PUT,   /* what was put is the answer, or its end, not *e */
	ANSWER_RETRY  /* another operation was begun instead, in a->op */
};

struct answer_form {
	const char *type; /* of the content; may be changed in the answer */
	enum answer_pace pace;
	size_t own_size;
	/*
	 * Every event but OP_ROOM, OP_IDLE and OP_FAILED. Negative: *e is told instead. NULL: the
	 * answer is nothing but its status. At OP_DONE it may begin another operation, in a->op,
	 * whose events follow.
	 */
	int (*put)(struct answer *a, const struct op_event *event, struct error *e);
	/* Written by answer_put_record and answer_put_list; NULL for other puts. See records.h */
	const struct answer_records *records;
	/*
	 * Called when the operation failed. event: OP_FAILED, or NULL when `put` or the body was at
	 * fault.
	 */
	enum answer_failure (*fail)(
		struct answer *a, struct error *e, const struct op_event *event);
	/* The head goes out, and it is no error's: adds headers. NULL: none. */
	void (*head)(struct answer *a);
	/* Frees what `own` has beyond itself. NULL: nothing. */
	void (*finish)(struct answer *a);
};

struct answer {
	/* the dialect's: */
	struct http_request *req;
	struct op_call call;
	struct op *op;
	void *own; /* of own_size, zeroed */
	struct buf out;
	int status; /* 200 */
	const char *type;
	uint64_t length; /* of the whole content, announced if it is large */
	struct {
		const char *data;
		size_t len;
		uint64_t ms;
	} keepalive; /* what goes out whenever a stream has been quiet for so long */

	/* ours: */
	const struct answer_form *form;
	const struct answer_body *body;
	void *body_arg;
	bool streaming, hungry, paused; /* paused: the operation is */
	bool ended, cut;                /* what is in `out` is the last */
	bool body_paused;
	unsigned held; /* by callers of functions that may end it */
	bool over;     /* it has ended meanwhile, and is freed when it is let go */
	const struct answer_socket *socket_form;
	struct websocket *socket; /* NULL until the operation's first event */
	bool socket_sent;         /* since the socket was writable the last time */
	const struct answer_pass *pass;
};

/* Makes an answer whose call lacks only its object: the dialect sets `sandbox` or `volume`. */
struct answer *answer_new(struct http_request *req, const struct answer_form *form);
/*
 * The sandbox that the caller's tenant means by this text: its id, or the name of one that lives.
 * An id wins over a name that looks like it. NULL: none.
 */
void answer_name_sandbox(struct answer *a, const char *text);
/* The operation is its op. The answer is not the caller's any more. */
void answer_run(struct answer *a);
/* Instead of all that, when the request cannot be decoded: tells *e, or that the sandbox is not
 * there. */
void answer_refuse(struct answer *a, const struct error *e);
/* Sent whenever a stream has been quiet for so long. The bytes stay the caller's. */
void answer_keep_alive(struct answer *a, const char *data, size_t len, uint64_t ms);
/* Appends, or takes if that is less work. */
void answer_put_bytes(struct answer *a, struct buf *bytes);

/* Turns a request's body into input of the operation. */
struct answer_body {
	/*
	 * Returns how many bytes were taken; the rest comes again when there is room. Negative: *e.
	 */
	ptrdiff_t (*data)(struct answer *a, const char *bytes, size_t len, struct error *e);
	int (*end)(struct answer *a, struct error *e);
	void (*finish)(void *body_arg); /* NULL: there is nothing to free */
};
/* One file: bytes as they are, and its end. */
extern const struct answer_body answer_body_file;
/* Bytes as they are, such as an archive. */
extern const struct answer_body answer_body_bytes;
/* answer_run, with the request's body as the operation's input, as fast as that takes it. */
void answer_run_with_body(struct answer *a, const struct answer_body *body);

/* ---- WebSockets ---- */

struct answer_socket {
	/* A message of the client's. Negative: `refused` puts *e, and the answer goes on. */
	int (*message)(struct answer *a, bool text, const char *data, size_t len, struct error *e);
	/* Sends what was wrong with the client's last message. */
	void (*refused)(struct answer *a, const struct error *e);
};
/* Whether the request asks for one; other upgrades, such as that to HTTP/2, may be passed over. */
bool answer_wants_socket(const struct http_request *req);
/*
 * answer_run, with a WebSocket as the answer. It is opened with the operation's first event, so
 * that an error before that is a status. Then `put` sends messages, and the socket is closed with
 * the operation's last event; the form's `fail` may send a message before it is closed for an
 * error. While the client reads slowly the operation is paused, and while the operation has no room
 * for input the client is.
 */
void answer_run_socket(struct answer *a, const struct answer_socket *socket);
/* Sends what is in `out` as a text message, and empties it. */
void answer_send_text(struct answer *a);
void answer_send_binary(struct answer *a, const struct buf *bytes);

/* ---- requests that are passed on to a port of the sandbox ---- */

struct answer_pass {
	const char *tunnel; /* the protocol of a connection as it is; NULL: HTTP */
	const char *target; /* as it is sent, from "/" on */
	/* Whether a field goes on, perhaps with another value: http/pass.h. NULL: all do. */
	bool (*request_field)(void *a, const char *name, const char **value);
	bool (*answer_field)(void *a, const char *name, const char **value);
};
/*
 * Runs an answer to op_port: the program that listens on the port answers. The form's `fail` is
 * called when it cannot be reached. The route `streams_body`, unless it is a tunnel.
 */
void answer_run_pass(struct answer *a, const struct answer_pass *pass);
