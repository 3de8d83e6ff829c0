/* A request target taken apart: path segments and query pairs, each decoded once. */
#pragma once

#include <stddef.h>

#include "base/error.h"

#define HTTP_SEGMENTS_MAX 32
#define HTTP_QUERY_MAX    64

struct http_pair {
	const char *name;
	const char *value;
};

struct http_target {
	size_t segment_count; /* "/a/b" has two, "/a/" has "a" and "", "/" has "" */
	size_t pair_count;
	const char *segments[HTTP_SEGMENTS_MAX];
	struct http_pair pairs[HTTP_QUERY_MAX];
};

/* text starts with "/", is cut into strings and decoded in place; the result points into it. */
int http_split_target(char *text, struct http_target *target, struct error *e);
