/*
 * One connection of a sandbox, as the files that carry it share it: connection.c begins, relays and
 * ends it, decide.c says whether it may be, dial.c opens the other side, requests.c reads what goes
 * up where that is HTTP, brokered.c hands it to bunker-broker.
 */
#pragma once

#include "egress/dns_message.h"
#include "egress/egress.h"
#include "egress/first.h"

#define CANDIDATES_MAX 16

enum stage {
	STAGE_LOOKING,   /* at its first bytes */
	STAGE_RESOLVING, /* its name */
	STAGE_DIALLING,
	STAGE_OPEN,
	STAGE_HANDING,  /* open, and the broker cannot take it yet */
	STAGE_BROKERED, /* the broker reads and writes; we count, and can end it */
	STAGE_REFUSING  /* it is told why, and ends when it has read that */
};

/* Requests on a connection that was decided by the Host of the first one. */
struct requests {
	char host[FIRST_NAME_SIZE];
	int state;
	unsigned count;
	uint64_t left; /* of a body */
	struct chunks chunks;
	size_t len;    /* bytes held */
	size_t passed; /* of those: may be sent */
	bool ended;    /* no more will come */
	uint8_t data[REQUEST_MAX];
};

struct connection {
	struct connection *prev, *next;         /* of its sandbox */
	struct connection *all_prev, *all_next; /* of everybody */
	struct client *client;
	struct source inner, outer; /* the sandbox's side and the internet's */
	struct address_port destination;
	struct address_port reached; /* what is dialled */
	enum stage stage;
	int64_t since_ms;    /* when its stage began */
	bool unseen;         /* open before its first bytes came: they are still to be looked at */
	bool looked;         /* its first bytes gave no name, or its name is here */
	bool is_brokered;    /* it goes through a broker, or nowhere */
	bool is_tls;         /* of those: else plain HTTP */
	struct peer *broker; /* of STAGE_BROKERED; NULL: it has ended the connection */
	uint64_t number;     /* what the broker calls it by */
	char *name;          /* that it was decided by; NULL: none */
	struct requests *requests; /* NULL: bytes pass as they are */
	struct lookup *lookups[2];
	struct dns_question question;
	struct address candidates[CANDIDATES_MAX];
	unsigned candidate_count, candidate;
	struct flow up, down;
	bool up_ended, down_ended;
	bool throttled; /* its sandbox had no bandwidth left: it goes on with a tick */
	int64_t active_ms;
	uint64_t sent, received, counted_sent, counted_received;
	struct destination *counts_for; /* NULL: it was not opened */
};

/* ---- connection.c ---- */

void connection_set_stage(struct connection *x, enum stage stage);
/* Adds to its sandbox's what it carried since the last time. */
void connection_count(struct connection *x);
/* Both directions move as far as they can. */
void connection_relay(struct connection *x);
/* Refused: by an answer to a request of HTTP, else by a reset. `host` is what it wanted; or NULL.
 */
void connection_refuse(struct connection *x, bool is_http, const char *host);

/* ---- decide.c ---- */

/* Decides at once, or looks at its first bytes. May end it. */
void decide_begin(struct connection *x);
/* Goes on when there are bytes, or when time has passed. */
void decide_look(struct connection *x);
/* Looks at first bytes that came after it was opened. Returns false when it is gone, or waits. */
bool decide_late(struct connection *x);
/* Whether the policy of now lets it go on. */
bool decide_holds(const struct connection *x);

/* ---- dial.c ---- */

/* Connects to where the sandbox wants to. */
void dial_destination(struct connection *x);
/* Connects to an address of x->name: the sandbox's, if it was told that one, or one that we find.
 */
void dial_name(struct connection *x);
/* The other side is there, or could not be reached: then the next address is tried. */
void dial_finish(struct connection *x);
void dial_tick(struct connection *x);
void dial_forget(struct connection *x);

/* ---- brokered.c ---- */

/* Hands it over; without a broker it waits, for a moment. */
void brokered_begin(struct connection *x);
void brokered_tick(struct connection *x);
/* Before its descriptors are closed: the broker's end with them. */
void brokered_cut(struct connection *x);

/* ---- requests.c ---- */

void requests_begin(struct connection *x, const char *host);
/* As flow_move, for the direction up. */
enum relay_result requests_move(struct connection *x);
/* Before bytes go down: whether they may. An answer decides what becomes of an upgrade. */
bool requests_see_answer(struct connection *x);
