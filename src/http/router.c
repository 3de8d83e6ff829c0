/*
 * Routes are few (tens), so they are tried one after the other; the number of segments rules most
 * of them out. When several match, literal segments win over {name}, the leftmost difference
 * deciding:
 * "/v1/sandboxes/search" is never taken for "/v1/sandboxes/{id}", whatever the order of the tables.
 *
 * HEAD is answered by GET routes, and OPTIONS is allowed wherever anything is.
 */
#include "http/router.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "http/parser.h"

struct entry {
	const struct http_mount *mount;
	const struct http_route *route;
	size_t segment_count;
	uint32_t literals; /* the first segment is the highest bit: a greater value is more specific
			    */
};

struct http_router {
	size_t count;
	struct entry entries[];
};

static int entry_init(
	struct entry *entry, const struct http_mount *mount, const struct http_route *route);
static bool entry_matches(const struct entry *entry, const struct http_target *target);
static bool answers(const struct http_route *route, enum http_method method);

int http_router_create(
	struct http_router **ret, const struct http_mount *mounts, size_t mount_count)
{
	size_t count = 0;
	for (size_t i = 0; i < mount_count; i++)
		count += mounts[i].route_count;
	autofree struct http_router *router =
		calloc(1, sizeof *router + count * sizeof router->entries[0]);
	if (!router)
		return -ENOMEM;
	for (size_t i = 0; i < mount_count; i++) {
		for (size_t j = 0; j < mounts[i].route_count; j++) {
			int r = entry_init(&router->entries[router->count++], &mounts[i],
				&mounts[i].routes[j]);
			if (r < 0)
				return r;
		}
	}
	*ret = take_ptr(router);
	return 0;
}

void http_router_destroy(struct http_router *router)
{
	free(router);
}

static int entry_init(
	struct entry *entry, const struct http_mount *mount, const struct http_route *route)
{
	*entry = (struct entry){.mount = mount, .route = route};
	if (route->pattern[0] != '/')
		return -EINVAL;
	for (const char *p = route->pattern; *p; p += 1 + strcspn(p + 1, "/")) {
		if (entry->segment_count == HTTP_SEGMENTS_MAX)
			return -EINVAL;
		if (p[1] != '{')
			entry->literals |= UINT32_C(1) << (31 - entry->segment_count);
		entry->segment_count++;
	}
	return 0;
}

struct http_match http_router_find(const struct http_router *router,
	const struct http_target *target, bool method_known, enum http_method method)
{
	struct http_match match = {0};
	uint32_t best = 0;
	for (size_t i = 0; i < router->count; i++) {
		const struct entry *entry = &router->entries[i];
		if (!entry_matches(entry, target))
			continue;
		match.allowed |= 1u << entry->route->method | 1u << HTTP_OPTIONS;
		if (entry->route->method == HTTP_GET)
			match.allowed |= 1u << HTTP_HEAD;
		if (!method_known || !answers(entry->route, method))
			continue;
		if (!match.route || entry->literals > best) {
			match.mount = entry->mount;
			match.route = entry->route;
			best = entry->literals;
		}
	}
	return match;
}

static bool entry_matches(const struct entry *entry, const struct http_target *target)
{
	if (entry->segment_count != target->segment_count)
		return false;
	const char *p = entry->route->pattern + 1;
	for (size_t i = 0; i < target->segment_count; i++) {
		const char *segment = target->segments[i];
		size_t len = strcspn(p, "/");
		if (p[0] == '{') {
			if (!segment[0])
				return false;
		} else if (strncmp(segment, p, len) != 0 || segment[len]) {
			return false;
		}
		p += len + 1;
	}
	return true;
}

static bool answers(const struct http_route *route, enum http_method method)
{
	return route->method == method || (route->method == HTTP_GET && method == HTTP_HEAD);
}

void http_format_allow(unsigned allowed, char out[HTTP_ALLOW_SIZE])
{
	size_t used = 0;
	out[0] = '\0';
	for (enum http_method m = HTTP_GET; m <= HTTP_OPTIONS; m++)
		if (allowed & 1u << m)
			used += (size_t)snprintf(out + used, HTTP_ALLOW_SIZE - used, "%s%s",
				used ? ", " : "", http_method_name(m));
}

int http_pattern_index(const char *pattern, const char *name)
{
	size_t len = strlen(name);
	int index = 0;
	for (const char *p = pattern + 1; *p; index++) {
		size_t segment = strcspn(p, "/");
		if (segment == len + 2 && p[0] == '{' && strncmp(p + 1, name, len) == 0)
			return index;
		p += segment;
		p += *p == '/';
	}
	return -1;
}
