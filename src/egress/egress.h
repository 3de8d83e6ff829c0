/*
 * bunker-egress: what sandboxes send to the internet ends here, and begins anew on the host's side.
 * It gets a sandbox's two sockets and its policy (wire/egress.h), accepts its connections, decides,
 * and opens the real ones. One thread, one epoll loop. It has no files, executes nothing, listens
 * nowhere, and reads what hostile programs and servers send: whoever takes it over can open
 * connections to the internet, and that is all.
 *
 * An address that the guard refuses is never connected to, whatever a policy says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "base/address.h"
#include "base/id.h"
#include "egress/destinations.h"
#include "egress/limit.h"
#include "egress/pins.h"
#include "egress/policy.h"
#include "stream/loop.h"
#include "wire/egress.h"

#define CONNECTIONS_PER_SANDBOX 256
#define CONNECTIONS_MAX         8192
#define LOOKUPS_PER_SANDBOX     64
#define LOOKUPS_MAX             1024

struct connection;
struct lookup;
struct peer;
struct broker_counts;

struct denial {
	uint64_t hash; /* of a destination */
	int64_t ms;
};

/* Refusals that were told lately. */
struct denials {
	int64_t minute_ms;
	unsigned told;
	struct denial recent[32];
};

/* A sandbox. */
struct client {
	char id[ID_SIZE];
	uint64_t namespace;
	struct source tcp, udp;
	int link_fd;
	bool has_policy, is_fresh;       /* since the front's last BEGIN */
	bool resting;                    /* its sockets, until the next tick */
	struct limit accepts, questions; /* in a second */
	struct limit up, down;           /* bytes in a second */
	struct policy policy;
	struct pins pins;
	uint32_t coming_size;
	uint8_t *coming; /* rules of a policy whose last part has not come */
	struct connection *connections;
	unsigned connection_count;
	unsigned lookup_count;
	uint64_t bytes_in, bytes_out; /* that the front was not told of */
	int64_t told_ms;              /* when it was told */
	struct destinations destinations;
	struct denials denials;
	UT_hash_handle by_id;
};

struct egress {
	struct egress_config config;
	/* Sends to the front, once there is one. Returns false if nobody took it, or has room. */
	bool (*tell_front)(const void *message, size_t len);
	struct client *clients;
	unsigned connection_count, connection_max;
	bool retired;
	int64_t retired_ms;
};

extern struct egress egress;

/* ---- main.c ---- */

int egress_main(int argc, char **argv);

/* ---- control.c: root's and the front's connections ---- */

int control_open(int listen_fd);
/* Ends when nobody needs us any more. */
void control_check_end(void);

/* ---- client.c ---- */

struct client *client_find(const char *id);
/* Takes the descriptors. */
void client_open(const struct egress_open *open, int tcp, int udp, int link);
/* A part of its rules. Returns false if malformed. */
bool client_take_policy(const struct egress_policy *part, const uint8_t *rules);
void client_forget(struct client *c);
void client_forget_all_but_fresh(void);
void client_begin_sync(void);
/* A front that knows nothing is there: it is told all destinations anew. */
void client_tell_all_anew(void);
/* Accepts nothing more; connections go on. */
void client_close_listeners(void);
void client_tick(void);

/* ---- connection.c ---- */

/* Takes the descriptor of an accepted connection. */
void connection_begin(struct client *c, int fd);
/* Both sides get a reset. */
void connection_reset(struct connection *x);
void connection_reset_all(struct client *c);
/* Ends what its policy does not let go on. */
void connection_review(struct client *c);
void connection_tick(void);

/* ---- brokered.c: connections that bunker-broker carries ---- */

/* A broker's connection; takes the descriptor. */
void brokered_open(const char *id, int fd);
/* What a broker has carried for this sandbox. */
void brokered_count(struct client *c, const struct peer *broker, const struct broker_counts *told);
/* It is gone. */
void brokered_lost(const struct peer *broker);

/* ---- relay.c: the bytes between two sockets ---- */

struct flow {
	int pipe[2]; /* -1: none is held */
	size_t held; /* bytes in it */
	bool from_ended, to_ended;
};

enum relay_result {
	RELAY_WAITS,
	RELAY_AGAIN, /* there is more to do */
	RELAY_ENDED, /* this direction is through */
	RELAY_BROKEN
};

void flow_init(struct flow *f);
void flow_release(struct flow *f);
/* Moves what can be moved, at most `most` bytes; *moved is increased. */
enum relay_result flow_move(struct flow *f, int from, int to, size_t most, uint64_t *moved);

/* ---- guard.c ---- */

/* Whether this sandbox may connect to this address at all, whatever name it has. Port 0: any. */
bool guard_allows(const struct client *c, const struct address *a, uint16_t port);

/* ---- lookup.c: names, asked of the operator's resolvers ---- */

struct dns_question;
typedef void lookup_done_fn(void *arg, const uint8_t *answer, size_t len);

/* `done` is called once, later; without an answer: none came. NULL: too many are under way. */
struct lookup *lookup_begin(
	struct client *c, const struct dns_question *q, lookup_done_fn *done, void *arg);
/* `done` will not be called. */
void lookup_cancel(struct lookup *l);
void lookup_tick(void);

/* ---- names.c: the sandboxes' questions ---- */

void names_ready(struct source *udp, uint32_t events);
struct name_stream;
/* A connection to port 53; takes the descriptor. */
void name_stream_begin(struct client *c, int fd);
void name_stream_tick(void);
void names_forget(struct client *c);

/* ---- tell.c: what the front is told ---- */

/* Either may be NULL: a name that was asked for has no address. */
void tell_denied(struct client *c, const char *host, const struct address_port *a);
/* Tells all that it has not told of the sandbox. Returns false if nobody takes it now. */
bool tell_client(struct client *c);
void tell_tick(void);

/* ---- confine.c ---- */

int egress_confine(uid_t uid);
