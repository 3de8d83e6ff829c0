/* Values that several of E2B's bodies have. */
#pragma once

#include "dialect/e2b/routes.h"

/* What a timeout is that was not given. */
#define E2B_TIMEOUT_V1_S 15
#define E2B_TIMEOUT_V2_S 300

/* Seconds, as E2B counts a sandbox's life. */
int e2b_check_timeout(int64_t seconds, struct error *e);
int e2b_metadata(const cJSON *metadata, struct scratch *memory, const char **ret, struct error *e);
/*
 * Rules about a sandbox's network. There is no network behind sandboxes yet, so that allowing or
 * denying all of it is a matter of course, and anything finer is refused by its name.
 */
int e2b_check_network(const cJSON *network, struct error *e);
/* Is it there, and not empty? */
bool e2b_is_asked_for(const cJSON *value);
