/*
 * The native REST API. One file per resource, each with its route table; api/openapi.yaml describes
 * the same routes, and a test compares the two.
 */
#pragma once

#include "answer/dialect.h"

/* Everything that is served under /v1, /health and /metrics. */
extern const struct dialect api_dialect;
