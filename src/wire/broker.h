/*
 * What is said to bunker-broker, which adds headers to requests of sandboxes: one process for each
 * tenant whose sandboxes have such rules. One message is one packet of a SEQPACKET connection, and
 * begins with struct broker_head.
 *
 *   root (bunker-wire)  brings the connection to bunker-egress
 *   the front           brings what is to be added, for each sandbox, with the secrets filled in
 *   bunker-egress       brings connections: the sandbox's and the one to the host that was meant
 *
 * A broker opens no socket. Who connects says everything anew, as with bunker-egress.
 */
#pragma once

#include <stdint.h>

#include "base/id.h"

#define BROKER_NAME          "bunker-broker"
#define BROKER_SOCKET_PREFIX "brk-" /* then the broker's id and ".sock", in data/run */
#define BROKER_PROTOCOL      1
#define BROKER_MESSAGE_MAX   65536
#define BROKER_RULES_SIZE    (1024 * 1024) /* of one sandbox, packed */
#define BROKER_RULES_PART    (60 * 1024)   /* in one message */
#define BROKER_HOST_SIZE     256

enum broker_op {
	/* From root. */
	BROKER_HELLO = 1, /* struct broker_hello → the same with the broker's own version */
	BROKER_EGRESS,    /* struct broker_head, with one descriptor: connections come over it */
	BROKER_PART,      /* it ends at once */
	/* From the front; each is answered by BROKER_DONE if it has a sequence. */
	BROKER_BEGIN,   /* all sandboxes follow */
	BROKER_SANDBOX, /* struct broker_sandbox, with a part of its entries; the last part counts
			 */
	BROKER_FORGET,  /* its connections are reset */
	BROKER_END,     /* what was not told since BEGIN is forgotten */
	/* To the front. */
	BROKER_DONE, /* in force: connections to hosts whose entries changed were reset */
	/* From egress. */
	BROKER_CONNECTION, /* struct broker_connection, with two descriptors: inner, outer */
	BROKER_RESET,      /* struct broker_connection: end it */
	/* To egress. */
	BROKER_COUNTS, /* struct broker_counts: bytes since the last; `ended` is the last one */
	/* To root. */
	BROKER_PARTED, /* it ends, for want of sandboxes; a death has no such word */
	BROKER_OP_END
};

struct broker_head {
	uint32_t op;
	uint32_t sequence;
	char id[ID_SIZE]; /* of a sandbox, or "" */
};

struct broker_hello {
	struct broker_head head;
	char version[32];
	uint32_t has_egress; /* of the answer: it has a connection to bunker-egress */
};

/* The entries follow in parts: the first is at 0, the last one ends with all of them. */
struct broker_sandbox {
	struct broker_head head;
	uint32_t entries_size;
	uint32_t part_at, part_size; /* of what follows */
};

/* An entry: this, then `size` bytes. Texts end with a NUL that counts. */
struct broker_entry {
	uint16_t kind;  /* enum broker_entry_kind */
	uint16_t flags; /* BROKER_TLS_ONLY */
	uint32_t size;
};

#define BROKER_TLS_ONLY 1 /* of a header: not added to plain HTTP */

enum broker_entry_kind {
	BROKER_CA_KEY,      /* DER, PKCS #8; once */
	BROKER_CA,          /* its certificate, DER; once */
	BROKER_HOST,        /* a name in lower case, or "*.name"; what follows is for it */
	BROKER_HEADER,      /* name, value: replaces the client's headers of that name */
	BROKER_PLACEHOLDER, /* what a header's value may contain, what stands for it */
	BROKER_ENTRY_KIND_COUNT
};

/* The first bytes of a connection are still to be read from its inner side. */
struct broker_connection {
	struct broker_head head;
	uint64_t number; /* egress's */
	uint16_t port;
	uint16_t is_tls; /* else plain HTTP */
	char host[BROKER_HOST_SIZE];
};

struct broker_counts {
	struct broker_head head;
	uint64_t number;
	uint64_t sent, received; /* to the internet, from it */
	uint32_t ended;
};
