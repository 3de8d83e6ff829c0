/*
 * What happened to a sandbox, as data. Texts are borrowed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct event_view {
	uint64_t number; /* counted from 1, for each sandbox */
	int64_t time_ms;
	const char *type, *cause;
	const char *details; /* NAME=VALUE strings, each with its NUL */
	size_t details_len;
};
