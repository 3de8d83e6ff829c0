/* The router: finds the route of a request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"
#include "http/target.h"

/* Limit for a pattern, its mount's prefix included. */
#define HTTP_PATTERN_SEGMENTS_MAX 32

struct http_router;

/* The mounts are borrowed. -EINVAL when a pattern or a prefix is malformed. */
int http_router_create(
	struct http_router **ret, const struct http_mount *mounts, size_t mount_count);
void http_router_destroy(struct http_router *router);

struct http_match {
	const struct http_mount *mount; /* without a route: the mount that owns the path, or NULL */
	const struct http_route *route; /* NULL: no route has both this path and this method */
	const char *pattern;            /* of the route, with its mount's prefix */
	unsigned allowed; /* the methods that the path has, as bits; 0: unknown path */
};
/* Matches an incomplete target only against {name**} patterns whose prefix was decoded. */
struct http_match http_router_find(const struct http_router *router, const struct http_request *req,
	const struct http_target *target, bool method_known, enum http_method method);

#define HTTP_ALLOW_SIZE 64
/* "GET, HEAD, OPTIONS" */
void http_format_allow(unsigned allowed, char out[HTTP_ALLOW_SIZE]);

enum http_param_kind {
	HTTP_PARAM_SEGMENT,  /* {name} */
	HTTP_PARAM_REST,     /* {name*} */
	HTTP_PARAM_RAW_REST, /* {name**} */
};
struct http_param_position {
	enum http_param_kind kind;
	size_t index; /* of the segment that it stands for, or the first of them */
};
/* Finds a parameter in a pattern. NULL: the last segment, if that takes the rest. */
bool http_pattern_find(const char *pattern, const char *name, struct http_param_position *ret);
