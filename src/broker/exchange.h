/*
 * One brokered connection, as the files that carry it share it: exchange.c begins and ends it,
 * outbound.c reads and rewrites what goes up, inbound.c brings down what comes back, or says why
 * nothing does.
 */
#pragma once

#include "base/buf.h"
#include "broker/broker.h"
#include "broker/side.h"
#include "stream/request.h"

#define ANSWER_SIZE 16384

enum stage {
	STAGE_WAITING,  /* for the entries of its host */
	STAGE_OPEN,     /* greets both sides, then carries requests */
	STAGE_REFUSING, /* it is told why, behind the answers that are still to come */
	STAGE_LEAVING,  /* it was told, and reads that */
	STAGE_ENDED     /* egress is still to be told */
};

enum outbound_state {
	OUTBOUND_HEAD,
	OUTBOUND_BODY,
	OUTBOUND_CHUNKS,
	OUTBOUND_UPGRADING, /* until the server has answered */
	OUTBOUND_RAW        /* bytes pass as they are */
};

/* What goes up. */
struct outbound {
	enum outbound_state state;
	unsigned count;
	uint64_t left; /* of a body */
	struct chunks chunks;
	struct buf head;  /* that goes on */
	size_t head_sent; /* of it */
	size_t len;       /* bytes of `data` */
	size_t passed;    /* of those: may be sent, behind the head */
	bool ended;       /* no more will come */
	int64_t head_ms;  /* since when a part of a head is here; 0: there is none */
	uint8_t data[REQUEST_MAX];
};

/* What comes down. */
struct inbound {
	size_t at, len;  /* bytes of `data` that are to be sent */
	bool ended, cut; /* no more will come; and that was no orderly end */
	uint8_t data[ANSWER_SIZE];
};

struct exchange {
	struct exchange *prev, *next;
	struct peer *egress; /* that brought it */
	uint64_t number;
	char id[ID_SIZE]; /* of its sandbox */
	char host[BROKER_HOST_SIZE];
	bool is_tls, up_ended, down_ended;
	enum stage stage;
	int64_t since_ms, active_ms; /* when its stage began; when bytes moved last */
	struct side inner, outer;    /* the sandbox's and the host's */
	struct outbound up;
	struct inbound down;
	char failure[192];               /* why the host cannot be reached; "": it can */
	char *refusal;                   /* of STAGE_REFUSING: to be sent last */
	uint64_t told_given, told_taken; /* egress knows of */
};

enum move_result {
	MOVE_WAITS,
	MOVE_AGAIN, /* there is more to do */
	MOVE_ENDED, /* this direction is through */
	MOVE_BROKEN /* the connection is to be reset */
};

/* ---- outbound.c ---- */

/* Moves what can be moved. May refuse the connection: then its stage is another. */
enum move_result outbound_move(struct exchange *x);
void outbound_finish(struct outbound *q);

/* ---- inbound.c ---- */

enum move_result inbound_move(struct exchange *x);
/* Nothing more goes up; when all answers have come this one is put behind them, and the end. */
void inbound_refuse(struct exchange *x, const char *status, const char *why);
