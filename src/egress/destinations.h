/*
 * What a sandbox used of the internet, by destination: the name that decided, else the address, and
 * the port. There are so many of a sandbox at most; then the one that was not used for the longest
 * time counts for a last one, which has no host and stands for all of those.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "base/address.h"

#define DESTINATIONS_MAX 256 /* of a sandbox, besides the one for many */

struct traffic {
	uint64_t connections, failed, refused;
	uint64_t bytes_in, bytes_out;
};

struct destination {
	struct destination *prev, *next;
	UT_hash_handle by_key;
	struct traffic total, told; /* told: to the front */
	int64_t used_ms;
	struct address address; /* that was used last */
	bool has_address;
	unsigned open; /* connections that count here: while there are any it stays */
	/* The key: both, without a gap. */
	uint16_t port;
	char host[];
};

struct destinations {
	struct destination *by_key;
	struct destination *list;  /* the one that was used last is first */
	struct destination *other; /* stands for many; NULL: none yet; in the list */
	unsigned count;            /* without that */
};

/* The one of this name and port, else of this address; made if there is none. Either may be NULL.
 */
struct destination *destination_find(
	struct destinations *all, const char *host, const struct address_port *a, int64_t now_ms);
void destination_add_bytes(
	struct destinations *all, struct destination *d, uint64_t in, uint64_t out, int64_t now_ms);
/* The front that was told is gone: all of it is news again. */
void destinations_untell(struct destinations *all);
void destinations_finish(struct destinations *all);
