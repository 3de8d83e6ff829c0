/*
 * E2B's API, for its own SDK: the control plane, and envd, which in E2B's cloud is a server inside
 * each sandbox and here is a part of this one. Requests are translated to the core's words and its
 * answers back; nothing is kept here.
 *
 * What works, and what differs from E2B's cloud, is in docs/e2b.md.
 */
#pragma once

#include "answer/dialect.h"

extern const struct dialect e2b_dialect;
