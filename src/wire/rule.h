/*
 * One entry of a list of what a sandbox may reach, as the front packs it for bunker-egress: parsed
 * and checked there, so that egress reads no text that a client wrote but names it compares.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/address.h"
#include "base/buf.h"

#define RULE_NAME_MAX 253

enum rule_kind {
	RULE_NAME,     /* this name */
	RULE_BELOW,    /* every name that ends with a dot and this one */
	RULE_RANGE,    /* these addresses */
	RULE_BROKERED, /* allows nothing: connections to this name, or *.name, go through the broker
			*/
	RULE_KIND_COUNT
};

struct egress_rule {
	enum rule_kind kind;
	bool denies;
	uint16_t port;              /* 0: every */
	struct address_range range; /* of RULE_RANGE */
	const char *name;           /* of the others: in lower case, without a dot at the end */
};

void rule_pack(struct buf *out, const struct egress_rule *rule);
/*
 * Reads the rule at *at and moves *at behind it. Its name lies in `data`. Returns 1, 0 at the end,
 * -EINVAL if malformed.
 */
int rule_unpack(const uint8_t *data, size_t len, size_t *at, struct egress_rule *ret);

/* Whether a name, in lower case and without a dot at the end, or an address is the rule's. */
bool rule_has_name(const struct egress_rule *rule, const char *name);
/* Whether connections to this name go through the broker by this rule. */
bool rule_is_brokered(const struct egress_rule *rule, const char *name);
/* Ranges of IPv6 have no address of IPv4, not even in its IPv6 form. */
bool rule_has_address(const struct egress_rule *rule, const struct address *a);
