/*
 * What is to be added to a sandbox's requests, as the front packs it (wire/broker.h): unpacked and
 * checked once, so that nothing of it can break a head that it is written into. It holds secrets,
 * and is wiped when it is freed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENTRIES_HOSTS_MAX  256
#define ENTRIES_OF_HOST    64 /* headers, and as many placeholders */
#define ENTRIES_NAME_MAX   256
#define ENTRIES_VALUE_MAX  16384
#define ENTRIES_BINARY_MAX 8192 /* of the authority's key and certificate */

/* A header's name and value; or a placeholder and what stands for it. */
struct entries_pair {
	const char *name, *value;
	bool tls_only;
};

struct entries_host {
	const char *name; /* in lower case, or "*.name" */
	struct entries_pair *headers, *placeholders;
	unsigned header_count, placeholder_count;
	const uint8_t *packed; /* all of it, to be compared with what it was before */
	size_t packed_len;
};

struct entries_binary {
	const uint8_t *data;
	size_t len;
};

struct entries {
	uint8_t *data; /* as it came: texts lie in it */
	size_t len;
	struct entries_binary key, certificate; /* of the authority; empty: there is none */
	struct entries_host *hosts;
	unsigned host_count;
};

/* Takes the data, which came from malloc, also if it is malformed: then -EINVAL. */
int entries_init(struct entries *e, uint8_t *data, size_t len);
void entries_finish(struct entries *e);

/* What is for this name: itself, or the longest "*.name" above it; NULL: nothing. */
const struct entries_host *entries_find(const struct entries *e, const char *name);
/* Whether both say the same for this name. */
bool entries_agree(const struct entries *a, const struct entries *b, const char *name);
bool entries_have_same_authority(const struct entries *a, const struct entries *b);
