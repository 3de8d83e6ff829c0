/*
 * What is said to bunker-egress, over SEQPACKET connections to data/run/egress.sock: one message is
 * one packet. Root's connection (bunker-wire) brings sockets and settings, the front's brings
 * policies. The process outlives both, and finds neither of them again by itself: who connects says
 * everything anew.
 *
 * A sandbox's connections are accepted once egress has both its sockets and its policy.
 */
#pragma once

#include <stdint.h>

#include "base/address.h"
#include "base/id.h"

#define EGRESS_SOCKET        "egress.sock"
#define EGRESS_NAME          "bunker-egress"
#define EGRESS_VERSION_SIZE  32
#define EGRESS_MESSAGE_MAX   65536
#define EGRESS_RANGES_MAX    64
#define EGRESS_RESOLVERS_MAX 4
#define EGRESS_PROTOCOL      6
#define EGRESS_RULES_MAX     4096          /* of one sandbox */
#define EGRESS_RULES_SIZE    (1024 * 1024) /* of all of them, packed */
#define EGRESS_RULES_PART    (60 * 1024)   /* in one message */

/* What a sandbox may reach. */
enum network_mode {
	NETWORK_NONE,  /* nothing: it has no route */
	NETWORK_OPEN,  /* the public internet */
	NETWORK_ALLOW, /* what its list allows */
	NETWORK_DENY,  /* the public internet without what its list denies */
	NETWORK_MODE_COUNT
};

enum egress_op {
	/* From root. */
	EGRESS_HELLO = 1, /* → the same with egress's own version, then an EGRESS_HELD for each */
	EGRESS_CONFIGURE, /* struct egress_config */
	EGRESS_OPEN,      /* struct egress_open, with three descriptors: TCP, UDP, link */
	EGRESS_BROKER, /* struct egress_head: a broker's id, with its connection (wire/broker.h) */
	EGRESS_RETIRE, /* accepts nothing more; ends with its last connection, or after an hour */
	EGRESS_PART, /* root leaves → the same, sequence: sandboxes; with none of them it ends */
	/* To root. */
	EGRESS_HELD, /* struct egress_open: what it has; an empty id ends */
	/* From the front; each is answered by EGRESS_DONE if it has a sequence. */
	EGRESS_BEGIN,  /* all policies follow */
	EGRESS_POLICY, /* struct egress_policy, with a part of its rules; the last part counts */
	EGRESS_FORGET, /* its sockets, its connections, its policy */
	EGRESS_END,    /* what had no policy since BEGIN is forgotten */
	/* To the front. */
	EGRESS_DONE,    /* in force */
	EGRESS_COUNTS,  /* struct egress_counts */
	EGRESS_DENIED,  /* struct egress_denied */
	EGRESS_TRAFFIC, /* struct egress_traffic */
	EGRESS_OP_END
};

struct egress_head {
	uint32_t op;
	uint32_t sequence;
	char id[ID_SIZE]; /* of a sandbox, or "" */
};

struct egress_hello {
	struct egress_head head;
	char version[EGRESS_VERSION_SIZE];
};

struct egress_open {
	struct egress_head head;
	uint64_t namespace; /* its inode */
};

struct egress_config {
	struct egress_head head;
	int64_t bandwidth;       /* of a sandbox: bytes a second, each way; 0: no limit */
	int64_t connection_rate; /* of a sandbox: new ones in a second; 0: no limit */
	uint32_t resolver_count, public_count, private_count;
	struct address_port resolvers[EGRESS_RESOLVERS_MAX];
	/* Local ranges that are reached as if they were global, and those that lists may name. */
	struct address_range public_ranges[EGRESS_RANGES_MAX];
	struct address_range private_ranges[EGRESS_RANGES_MAX];
};

/* The rules (wire/rule.h) follow in parts: the first is at 0, the last one ends with all of them.
 */
struct egress_policy {
	struct egress_head head;
	uint32_t mode;        /* enum network_mode */
	char broker[ID_SIZE]; /* of RULE_BROKERED; or "" */
	uint32_t rules_size;
	uint32_t part_at, part_size; /* of what follows */
};

/* Bytes of a sandbox since this was told last. */
struct egress_counts {
	struct egress_head head;
	uint64_t bytes_in, bytes_out;
};

/* A connection or a question for a name that was refused. */
struct egress_denied {
	struct egress_head head;
	struct address address;
	uint16_t port;
	uint16_t has_address; /* else it was a question, and has no port either */
	char host[256];       /* "": no name was said */
};

/*
 * Use of one destination of a sandbox since it was told last; since the beginning, to a front that
 * was told nothing yet. Destinations that are too many are told as one without a host.
 */
struct egress_traffic {
	struct egress_head head;
	uint64_t connections, failed, refused; /* failed: allowed, but not reached */
	uint64_t bytes_in, bytes_out;
	uint64_t age_ms;        /* since its last use */
	struct address address; /* that was used last */
	uint16_t has_address;
	uint16_t port;  /* 0: its name was asked for, or it stands for many */
	char host[256]; /* the name that decided, else the address; "": it stands for many */
};

/* What egress says by itself. */
union egress_told {
	struct egress_head head;
	struct egress_counts counts;
	struct egress_denied denied;
	struct egress_traffic traffic;
};
