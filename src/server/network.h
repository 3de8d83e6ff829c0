/* Options about what sandboxes may reach. */
#pragma once

#include "base/error.h"
#include "wire/egress.h"

/* Comma-separated lists. */
int network_add_resolvers(struct egress_config *c, const char *list, struct error *e);
int network_add_private(struct egress_config *c, const char *list, struct error *e);
int network_add_public(struct egress_config *c, const char *list, struct error *e);
/* Takes those of /etc/resolv.conf, if none were given. */
void network_find_resolvers(struct egress_config *c);
