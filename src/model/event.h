/* Events of a sandbox as data. Texts are borrowed. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/field.h"

struct event_view {
	uint64_t number; /* counted from 1, for each sandbox */
	int64_t time_ms;
	const char *sandbox; /* its id */
	const char *type, *cause;
	struct strings details; /* NAME=VALUE */
};

extern const struct field_table event_model;
