/* What a sandbox's lists say of names and addresses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/egress.h"
#include "wire/rule.h"

enum verdict {
	VERDICT_NONE, /* no list names it */
	VERDICT_ALLOWED,
	VERDICT_DENIED
};

struct policy {
	enum network_mode mode;
	uint8_t *data; /* the rules as they came: names lie in it */
	struct egress_rule *rules;
	size_t count;
	bool allows_names, denies_names, brokers_names;
	char broker[ID_SIZE]; /* of those; or "" */
};

/* Takes the data, which came from malloc, also if it is malformed: then -EINVAL. */
int policy_init(struct policy *p, enum network_mode mode, uint8_t *data, size_t len);
void policy_finish(struct policy *p);

/* Names are in lower case, without a dot at the end. What is allowed is not denied. */
enum verdict policy_of_name(const struct policy *p, const char *name, uint16_t port);
enum verdict policy_of_address(const struct policy *p, const struct address_port *a);
/* Whether connections to this name go through the broker, if they may be. */
bool policy_is_brokered(const struct policy *p, const char *name, uint16_t port);
/* Whether the name may be asked for: some port of it may be reached. */
bool policy_resolves(const struct policy *p, const char *name);
/*
 * Whether a list names this private address by a range of which the operator opened all. Port 0 is
 * any port.
 */
bool policy_opens(const struct policy *p, const struct egress_config *c,
	const struct address *address, uint16_t port);
