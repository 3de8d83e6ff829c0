/*
 * Agentuity's sandbox API, for its own SDK and command line. Requests are translated to the core's
 * words and its answers back; nothing is kept here.
 *
 * What works, and what differs from Agentuity's cloud, is in docs/agentuity.md.
 */
#pragma once

#include <uv.h>

#include "box/box.h"
#include "http/auth.h"
#include "http/http.h"

struct agentuity {
	struct box *box;
	struct auth *auth;
	uv_loop_t *loop;
};

#define AGENTUITY_PREFIX     "/agentuity"
#define AGENTUITY_MOUNTS_MAX 32

/* How many there are. */
size_t agentuity_mounts(struct agentuity *d, struct http_mount out[AGENTUITY_MOUNTS_MAX]);
