/* A request target taken apart: path segments and query pairs, each decoded once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define HTTP_SEGMENTS_MAX 128
#define HTTP_QUERY_MAX    64

struct http_pair {
	const char *name;
	const char *value;
};

struct http_target {
	bool complete;        /* nothing was refused */
	size_t segment_count; /* "/a/b" has two, "/a/" has "a" and "", "/" has "" */
	size_t pair_count;
	/* Behind the last segment: NULL, or the beginning of the refused one. */
	const char *segments[HTTP_SEGMENTS_MAX + 1];
	struct http_pair pairs[HTTP_QUERY_MAX];
};

/*
 * text starts with "/", is cut into strings and decoded in place; the result points into it, each
 * segment to where it began. What is refused leaves a target of what came before it.
 */
int http_split_target(char *text, struct http_target *target, struct error *e);
