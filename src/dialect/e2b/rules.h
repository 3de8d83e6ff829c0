/* E2B's header rules and secrets of them, in both directions. */
#pragma once

#include "json/json.h"

/* {domain: [{transform: {headers}}]}, of a sandbox's rules. */
void e2b_put_rules(struct json_writer *w, const struct field *f, const void *record);
