/* What a sandbox may reach. */
#pragma once

#include "box/sandbox/part.h"
#include "box/sandbox/sandbox.h"

extern const struct sandbox_part network_part;

/* Bytes and refusals, as bunker-egress tells them of a sandbox; `box` is a struct box. */
void network_told(void *box, const union egress_told *told);

/* Puts in force what its row says. In a turn, of a sandbox that has processes. */
void network_apply(struct sandbox *s, sandbox_done_fn *done, void *arg);
/* What a wish comes to: nothing, on a host that has no networks. */
enum network_mode network_grant(const struct box *b, enum network_mode mode, bool is_wish);
/* Returns -1 with a sentence if it is malformed, or if this server cannot give a sandbox this. */
int network_check(
	struct box *b, const char *tenant, const struct network_settings *network, struct error *e);
