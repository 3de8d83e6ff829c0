/*
 * Agentuity's sandbox API, for its own SDK and command line. Requests are translated to the core's
 * words and its answers back; nothing is kept here but who waits for whom.
 *
 * What works, and what differs from Agentuity's cloud, is in docs/agentuity.md.
 */
#pragma once

#include "answer/dialect.h"

struct agentuity_input;

struct agentuity {
	struct server *server;
	struct agentuity_input *inputs; /* streams announced for somebody's stdin */
};

#define AGENTUITY_PREFIX "/agentuity"

extern const struct dialect agentuity_dialect;
