/*
 * The model: sandboxes, their executions and files, for every dialect. Here is the core as a whole;
 * each of its parts has a header of its own. It knows init's frames, the warden's requests and the
 * store's rows; it knows nothing of HTTP, JSON or SQL.
 *
 * Everything here runs on one loop. Calls that need time take a callback, which is always called
 * exactly once, never before the call has returned.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/error.h"
#include "box/sandbox/config.h"
#include "model/usage.h"

struct box;
struct driver_links;
struct store;

/* Events of a start, each told once, in this order. */
struct box_events {
	void (*ready)(void *arg); /* requests can be served */
	void (*found)(void *arg); /* every init has answered, or was given up */
	void *arg;
};

int box_open(struct box **ret, uv_loop_t *loop, struct store *store,
	const struct driver_links *links, const struct box_config *config,
	const struct box_events *events, struct error *e);
/* The warden is gone: nothing can be booted or destroyed any more. */
void box_on_warden_lost(struct box *b, void (*lost)(void *arg), void *arg);
/* With drain every sandbox is destroyed first; otherwise they go on without us. */
void box_close(struct box *b, bool drain, void (*closed)(void *arg), void *arg);

const struct box_config *box_config(const struct box *b);

void box_counters(const struct box *b, struct box_counters *out);
