/*
 * Agentuity's sandbox API, for its own SDK and command line. Requests are translated to the core's
 * words and its answers back; nothing is kept here but who waits for whom.
 *
 * What works, and what differs from Agentuity's cloud, is in docs/agentuity.md.
 */
#pragma once

#include <uv.h>

#include "box/box.h"
#include "http/auth.h"
#include "http/http.h"

struct agentuity_guard;
struct agentuity_input;

struct ops;

struct agentuity {
	struct box *box;
	struct ops *ops;
	struct auth *auth;
	uv_loop_t *loop;
	struct agentuity_guard *guards; /* executions that end when nobody waits for them */
	struct agentuity_input *inputs; /* streams announced for somebody's stdin */
	bool stopping;
};

#define AGENTUITY_PREFIX     "/agentuity"
#define AGENTUITY_MOUNTS_MAX 48

/* How many there are. */
size_t agentuity_mounts(struct agentuity *d, struct http_mount out[AGENTUITY_MOUNTS_MAX]);
/* Whoever waited for a command when the last server ended may come back to it. */
void agentuity_start(struct agentuity *d);
/* From now on a client that goes away is our doing, and cancels nothing. */
void agentuity_stop(struct agentuity *d);
