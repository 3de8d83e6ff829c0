/*
 * E2B's API, for its own SDK: the control plane, and envd, which in E2B's cloud is a server inside
 * each sandbox and here is a part of this one. Requests are translated to the core's words and its
 * answers back; nothing is kept here.
 *
 * What works, and what differs from E2B's cloud, is in docs/e2b.md.
 */
#pragma once

#include <uv.h>

#include "box/box.h"
#include "http/auth.h"
#include "http/http.h"

struct ops;

struct e2b {
	struct box *box;
	struct ops *ops;
	struct auth *auth;
	uv_loop_t *loop;
	const char
		*domain; /* below which sandboxes have their names, with the port if it needs one */
};

#define E2B_MOUNTS_MAX 96

/* How many there are: the control plane, bare and below /e2b, and envd, which claims its requests.
 */
size_t e2b_mounts(struct e2b *d, struct http_mount out[E2B_MOUNTS_MAX]);
