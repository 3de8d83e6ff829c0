/*
 * A connection to a process that outlives it and that it may outlive: bunker-egress, or a
 * bunker-broker. What is in force there for each sandbox is kept here, and told anew to whoever
 * answers. One message is one packet, and begins with struct tell_head.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/id.h"

typedef void tell_done_fn(void *arg, int error); /* 0 or an errno */

/* What every message begins with, as in wire/egress.h and wire/broker.h. */
struct tell_head {
	uint32_t op;
	uint32_t sequence;
	char id[ID_SIZE]; /* of a sandbox, or "" */
};

/* What ends the fixed part of a message that tells of a sandbox. */
struct tell_part {
	uint32_t size;    /* of all that follows, in all parts */
	uint32_t at, len; /* of what follows in this one */
};

#define TELL_FIXED_MAX 128 /* the fixed part of a message */

struct tell_protocol {
	const char *peer;                       /* for the log */
	uint32_t begin, set, forget, end, done; /* numbers of messages */
	size_t fixed_size;                      /* of a message that tells of a sandbox */
	size_t part_max;                        /* what follows it, at most */
	/* A message other than `done`, with its id closed by a NUL. May be NULL. */
	void (*told)(void *arg, const void *message, size_t len);
	/* Nobody answers; called again and again until somebody does. May be NULL. */
	void (*absent)(void *arg);
};

struct tell_call;
struct tell_packet;
struct tell_known;

struct tell_link {
	const struct tell_protocol *protocol;
	void *arg; /* of its functions */
	uv_loop_t *loop;
	uv_poll_t *poll; /* NULL: not connected */
	uv_timer_t timer;
	char path[108]; /* as sun_path */
	int fd;
	uint32_t sequence;
	bool complete; /* every sandbox is known: others are to be forgotten */
	struct tell_known *known;
	struct tell_packet *packets; /* to be sent */
	struct tell_call *calls;     /* that wait for their answer */
	void (*closed)(void *arg);
	void *closed_arg;
};

void tell_link_open(struct tell_link *l, const struct tell_protocol *protocol, uv_loop_t *loop,
	const char *path, void *arg);
/* Calls that are not answered are dropped. */
void tell_link_close(struct tell_link *l, void (*closed)(void *arg), void *arg);
bool tell_link_is_busy(const struct tell_link *l);
bool tell_link_is_empty(const struct tell_link *l); /* no sandbox is known, no call waits */
/* Tries to connect now, if it is not connected. */
void tell_link_connect(struct tell_link *l);
/* Ends the calls that wait. */
void tell_link_fail(struct tell_link *l, int error);
/*
 * fixed: what the message begins with; its head and its struct tell_part are filled in. `done`
 * comes when it is in force, for connections that are open, too.
 */
void tell_link_set(struct tell_link *l, const char *id, const void *fixed, const struct buf *body,
	tell_done_fn *done, void *arg);
/* Its connections end; `done` may be NULL. */
void tell_link_forget(struct tell_link *l, const char *id, tell_done_fn *done, void *arg);
void tell_link_complete(struct tell_link *l);
