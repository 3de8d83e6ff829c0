/*
 * Connections to the bunker-brokers: one for each that has a sandbox. bunker-wire is asked to start
 * a broker before it is connected to, and again whenever nobody answers there.
 */
#pragma once

#include "box/link/tell_link.h"
#include "wire/network.h"

typedef void brokers_replied_fn(void *arg, const struct network_reply *reply);

struct broker;

struct brokers {
	uv_loop_t *loop;
	char run_dir[77];
	/* Asks bunker-wire for the broker of this id. */
	void (*ask)(void *arg, const char *id, brokers_replied_fn *replied, void *replied_arg);
	void *ask_arg;
	struct broker *by_id;
	unsigned open; /* brokers whose handles are not closed */
	bool complete;
	void (*closed)(void *arg);
	void *closed_arg;
};

/* Of b: loop, ask, ask_arg. */
void brokers_open(struct brokers *b, const char *run_dir);
/* Calls that are not answered are dropped. */
void brokers_close(struct brokers *b, void (*closed)(void *arg), void *arg);
bool brokers_are_busy(const struct brokers *b);
/* entries: of a sandbox, packed (wire/broker.h). `done` as in tell_link_set. */
void brokers_set(struct brokers *b, const char *broker, const char *sandbox,
	const struct buf *entries, tell_done_fn *done, void *arg);
/* Its connections end; `done` may be NULL. */
void brokers_forget(
	struct brokers *b, const char *broker, const char *sandbox, tell_done_fn *done, void *arg);
void brokers_complete(struct brokers *b);
