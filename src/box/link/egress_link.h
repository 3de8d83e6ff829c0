/* The connection to bunker-egress: which sandbox may reach what, and what egress says by itself. */
#pragma once

#include "box/link/tell_link.h"
#include "wire/egress.h"

typedef void egress_told_fn(void *arg, const union egress_told *told);

struct egress_link {
	struct tell_link link;
	egress_told_fn *told;
	void *told_arg;
};

/* What a sandbox may reach, as bunker-egress is told. */
struct driver_policy {
	enum network_mode mode;
	const char *broker;      /* the id of the one that its rules are for; "": it has none */
	const struct buf *rules; /* packed: wire/rule.h */
};

/* `told` hears what egress says by itself. */
void egress_link_open(struct egress_link *l, uv_loop_t *loop, const char *run_dir,
	egress_told_fn *told, void *told_arg);
void egress_link_set(struct egress_link *l, const char *id, const struct driver_policy *policy,
	tell_done_fn *done, void *arg);
