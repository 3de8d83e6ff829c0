/*
 * What the front may ask of bunker-wire, the process that connects a sandbox's network namespace
 * with bunker-egress: one fixed-size request, one fixed-size reply, over a SEQPACKET socket pair. A
 * sandbox is named by its id alone; there are no addresses and no descriptors.
 *
 * All of it may be asked twice: a process that was started again says NETWORK_STARTED, and what had
 * no answer is asked again. Replies carry the asker's epoch, because the socket pair outlives a
 * front.
 */
#pragma once

#include <stdint.h>

#include "base/id.h"

enum network_op {
	NETWORK_HELLO = 1, /* → step: what this host lacks for any network; 0: nothing */
	NETWORK_ON,     /* id: what it sends goes to egress from now on; fine if it does already */
	NETWORK_OFF,    /* id: nothing leaves it any more; fine if nothing did, or it is dead */
	NETWORK_BROKER, /* id: of a broker; it runs and listens, and egress knows it */
	NETWORK_OP_END,
	NETWORK_STARTED = 100 /* said unasked, by a process that took over from a dead one */
};

/* The step that failed. */
enum network_step {
	NETWORK_STEP_NONE,
	NETWORK_STEP_REQUEST,
	NETWORK_STEP_FIND,
	NETWORK_STEP_ENTER,
	NETWORK_STEP_ROUTES,
	NETWORK_STEP_SOCKETS,
	NETWORK_STEP_PROGRAM,
	NETWORK_STEP_ATTACH,
	NETWORK_STEP_HAND_OVER,
	NETWORK_STEP_BROKER,
	NETWORK_STEP_WALL,
	NETWORK_STEP_END
};

const char *network_step_name(enum network_step step);

struct network_request {
	uint32_t op;
	uint32_t sequence;
	uint32_t epoch;
	char id[ID_SIZE];
};

struct network_reply {
	uint32_t op;
	uint32_t sequence;
	uint32_t epoch;
	int32_t error; /* errno, 0 when done */
	uint32_t step; /* enum network_step */
	char id[ID_SIZE];
};
