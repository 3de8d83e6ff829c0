/*
 * The connection to bunker-egress, which outlives it and which it may outlive: every policy that is
 * in force is kept here, and told anew to whoever answers there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "wire/egress.h"

typedef void egress_done_fn(void *arg, int error); /* 0 or an errno */
typedef void egress_told_fn(void *arg, const union egress_told *told);

struct egress_call;
struct egress_packet;
struct egress_known;

struct egress_link {
	uv_loop_t *loop;
	uv_poll_t *poll; /* NULL: not connected */
	uv_timer_t timer;
	char path[108]; /* as sun_path */
	int fd;
	uint32_t sequence;
	bool complete; /* every sandbox's policy is known: others are to be forgotten */
	struct egress_known *known;
	struct egress_packet *packets; /* to be sent */
	struct egress_call *calls;     /* that wait for their answer */
	egress_told_fn *told;
	void *told_arg;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* `told` hears what egress says by itself. */
void egress_link_open(struct egress_link *l, uv_loop_t *loop, const char *run_dir,
	egress_told_fn *told, void *told_arg);
/* Calls that are not answered are dropped. */
void egress_link_close(struct egress_link *l, void (*closed)(void *arg), void *arg);
bool egress_link_is_busy(const struct egress_link *l);
/* `done` comes when it is in force, for connections that are open, too. */
void egress_link_set(struct egress_link *l, const char *id, enum network_mode mode,
	const struct buf *rules, egress_done_fn *done, void *arg);
/* Its connections end; `done` may be NULL. */
void egress_link_forget(struct egress_link *l, const char *id, egress_done_fn *done, void *arg);
void egress_link_complete(struct egress_link *l);
