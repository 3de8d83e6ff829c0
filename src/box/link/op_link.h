/*
 * Requests to one privileged process and their answers, over a SEQPACKET socket pair: messages of a
 * fixed size, answered in any order. What the socket does not take at once is sent later.
 *
 * The socket pair may outlive a front: where the protocol has an epoch, an answer that was meant
 * for an earlier front is dropped. Where the process can be started again it says so, unasked, and
 * everything that has no answer yet is asked once more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#define OP_REPLY_MAX 512

/* Every request and every reply begins with this. */
struct op_head {
	uint32_t op;
	uint32_t sequence;
};

typedef void op_reply_fn(void); /* as its protocol's `deliver` calls it */

struct op_protocol {
	const char *peer; /* for the log */
	size_t request_size, reply_size;
	/* Where these members are; 0: the protocol has none. */
	size_t request_epoch, reply_epoch; /* uint32_t */
	size_t reply_fd;    /* int32_t: a descriptor that came beside the reply, or -1 */
	uint32_t restarted; /* the op of what a process says that was started again; 0: none is */
	void (*deliver)(op_reply_fn *reply, void *arg, const void *message);
};

struct op_call;

struct op_link {
	const struct op_protocol *protocol;
	int fd;
	uv_poll_t poll;
	uint32_t sequence, epoch;
	struct op_call *calls;   /* all that wait for an answer, oldest first */
	struct op_call *unsent;  /* the first that the socket has not taken */
	bool writing;            /* we are told when it takes more */
	void (*lost)(void *arg); /* the other side is gone; may be NULL */
	void *arg;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* Returns a negative error of libuv when it fails. */
int op_link_open(struct op_link *l, const struct op_protocol *protocol, uv_loop_t *loop, int fd,
	void (*lost)(void *arg), void *arg);
/* Copies the request, and fills in its sequence and epoch. */
void op_link_call(struct op_link *l, const void *request, op_reply_fn *reply, void *arg);
bool op_link_is_busy(const struct op_link *l);
/* Calls that are not answered are dropped. */
void op_link_close(struct op_link *l, void (*closed)(void *arg), void *arg);
