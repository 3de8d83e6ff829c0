/* Which route answers a path and a method. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"
#include "http/target.h"

struct http_router;

/* The mounts are borrowed. -EINVAL when a pattern is malformed. */
int http_router_create(
	struct http_router **ret, const struct http_mount *mounts, size_t mount_count);
void http_router_destroy(struct http_router *router);

struct http_match {
	const struct http_mount *mount;
	const struct http_route *route; /* NULL: no route has both this path and this method */
	unsigned allowed; /* the methods that the path has, as bits; 0: unknown path */
};
struct http_match http_router_find(const struct http_router *router,
	const struct http_target *target, bool method_known, enum http_method method);

#define HTTP_ALLOW_SIZE 64
/* "GET, HEAD, OPTIONS" */
void http_format_allow(unsigned allowed, char out[HTTP_ALLOW_SIZE]);

/* The segment that {name} stands for in the pattern, or -1. */
int http_pattern_index(const char *pattern, const char *name);
