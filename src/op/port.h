/* Connections to ports of a sandbox. */
#pragma once

#include "model/port.h"
#include "op/op.h"

/*
 * Without a tenant in the call, the port must be open to everyone, or the caller must hold a token:
 * else the operation fails with OP_DENIED, also when there is no such sandbox.
 */
struct op_port {
	unsigned port;
	char token[ID_SIZE];      /* the id of the one of this port that was shown; "": none */
	bool holds_traffic_token; /* of this sandbox, for all its ports */
	bool repeatable;          /* a spare connection will do: op_port_again */
};

/*
 * OP_SOCKET when the port has accepted. The operation lasts as long as the connection: the caller
 * leaves it when it has closed the socket, and is not told when the sandbox ends, because the
 * socket is. If nothing listens, it fails with ERROR_PORT_CLOSED.
 */
struct op *op_port(const struct op_call *call, const struct op_port *request);
/* The spare connection is closed: OP_SOCKET follows with a new one, or OP_FAILED. */
void op_port_again(struct op *op);
/* The answer has begun. */
void op_port_note_answer(struct op *op);
/*
 * Takes the connection back, for the next request to this port: it has carried requests without a
 * body only, and whole answers.
 */
void op_port_put_spare(struct op *op, uv_tcp_t *stream);
/* Bytes have passed: the sandbox is not idle. Cheap enough for each of them. */
void op_port_note_traffic(struct op *op);

/* OP_ROW with a struct port_listener each, in the order of ports. */
struct op *op_port_list(const struct op_call *call);

/* ---- who may see a port without a key ---- */

struct op_port_grant {
	enum {
		OP_PORT_OPEN, /* to everyone */
		OP_PORT_CLOSE,
		OP_PORT_TOKEN, /* a new one, for life_ms */
		OP_PORT_REVOKE /* the token of this id */
	} act;
	int64_t port;
	int64_t life_ms;
	char id[ID_SIZE];
};

/* OP_DONE with the grant that was made, if one was. */
struct op *op_port_grant(const struct op_call *call, const struct op_port_grant *request);
