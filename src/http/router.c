/*
 * Routes are few (hundreds at most), so they are tried one after the other; the number of segments
 * rules most of them out. When several match, literal segments win over {name}, the leftmost
 * difference deciding: "/v1/sandboxes/search" is never taken for "/v1/sandboxes/{id}", whatever the
 * order of the tables. A pattern that ends in {name*} or {name**} wins only when nothing else does,
 * the longest first.
 *
 * A request that some mount claims belongs to the mounts that claim it; mounts that claim never see
 * another. The prefix of a mount is put in front of its patterns here, once.
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

/* A path with what stands behind it. Mounts have one without a route, for errors below them. */
struct entry {
	const struct http_mount *mount;
	const struct http_route *route;
	char *pattern;
	unsigned claim;       /* 0: the mount claims nothing; else the claim's bit */
	size_t segment_count; /* without the rest */
	bool takes_rest;
	bool takes_raw;
	uint32_t literals; /* the first segment is the highest bit: a greater value is closer */
};

struct http_router {
	const struct http_mount *mounts;
	size_t mount_count;
	size_t count;
	struct entry entries[];
};

static int add_mount(struct http_router *router, const struct http_mount *mount, unsigned claim);
static int entry_init(struct entry *entry, const struct http_mount *mount,
	const struct http_route *route, unsigned claim);
static int read_pattern(struct entry *entry);
static uint64_t find_claims(const struct http_router *router, const struct http_request *req);
static bool entry_matches(const struct entry *entry, const struct http_target *target);
static bool segments_match(const struct entry *entry, const struct http_target *target);
static bool is_closer(const struct entry *a, const struct entry *b);
static bool answers(const struct http_route *route, bool method_known, enum http_method method);
static unsigned methods_of(const struct http_route *route);

int http_router_create(
	struct http_router **ret, const struct http_mount *mounts, size_t mount_count)
{
	size_t count = mount_count;
	unsigned claims = 0;
	int r = 0;
	for (size_t i = 0; i < mount_count; i++)
		count += mounts[i].route_count;
	struct http_router *router = calloc(1, sizeof *router + count * sizeof router->entries[0]);
	if (!router)
		return -ENOMEM;
	router->mounts = mounts;
	router->mount_count = mount_count;
	for (size_t i = 0; i < mount_count && r == 0; i++)
		r = add_mount(router, &mounts[i], mounts[i].claims ? ++claims : 0);
	if (r == 0 && claims > HTTP_CLAIMS_MAX)
		r = -EINVAL;
	if (r < 0)
		http_router_destroy(router);
	else
		*ret = router;
	return r;
}

static int add_mount(struct http_router *router, const struct http_mount *mount, unsigned claim)
{
	int r = 0;
	if (mount->prefix || claim)
		r = entry_init(&router->entries[router->count++], mount, NULL, claim);
	for (size_t i = 0; i < mount->route_count && r == 0; i++)
		r = entry_init(&router->entries[router->count++], mount, &mount->routes[i], claim);
	return r;
}

static int entry_init(struct entry *entry, const struct http_mount *mount,
	const struct http_route *route, unsigned claim)
{
	struct buf pattern = {0};
	*entry = (struct entry){.mount = mount, .route = route, .claim = claim};
	if (mount->prefix)
		buf_append_str(&pattern, mount->prefix);
	buf_append_str(&pattern, route ? route->pattern : "/{rest**}");
	entry->pattern = buf_take_str(&pattern);
	return entry->pattern ? read_pattern(entry) : -ENOMEM;
}

static int read_pattern(struct entry *entry)
{
	const char *pattern = entry->pattern;
	struct http_param_place rest;
	size_t count = 0;
	if (pattern[0] != '/')
		return -EINVAL;
	for (const char *p = pattern + 1, *end; p; p = *end ? end + 1 : NULL) {
		end = p + strcspn(p, "/");
		bool misplaced = *end && (end == p || strncmp(end - 2, "*}", 2) == 0);
		if (misplaced || count == HTTP_PATTERN_SEGMENTS_MAX)
			return -EINVAL;
		if (p[0] != '{')
			entry->literals |= UINT32_C(1) << (31 - count);
		count++;
	}
	entry->segment_count = count;
	if (http_pattern_find(pattern, NULL, &rest)) {
		entry->takes_rest = true;
		entry->takes_raw = rest.kind == HTTP_PARAM_RAW_REST;
		entry->segment_count = rest.index;
	}
	return 0;
}

void http_router_destroy(struct http_router *router)
{
	if (!router)
		return;
	for (size_t i = 0; i < router->count; i++)
		free(router->entries[i].pattern);
	free(router);
}

/* ---- finding ---- */

struct http_match http_router_find(const struct http_router *router, const struct http_request *req,
	const struct http_target *target, bool method_known, enum http_method method)
{
	uint64_t claims = find_claims(router, req);
	const struct entry *best = NULL, *owner = NULL;
	unsigned allowed = 0;
	for (size_t i = 0; i < router->count; i++) {
		const struct entry *entry = &router->entries[i];
		if (!(claims & UINT64_C(1) << entry->claim) || !entry_matches(entry, target))
			continue;
		if (!owner || is_closer(entry, owner))
			owner = entry;
		if (!entry->route)
			continue;
		allowed |= methods_of(entry->route);
		if (answers(entry->route, method_known, method) &&
			(!best || is_closer(entry, best)))
			best = entry;
	}
	const struct entry *found = best ? best : owner;
	return (struct http_match){found ? found->mount : NULL, best ? best->route : NULL,
		best ? best->pattern : NULL, allowed};
}

/* The claims that hold, as bits; the lowest, when none does, stands for the other mounts. */
static uint64_t find_claims(const struct http_router *router, const struct http_request *req)
{
	uint64_t found = 0;
	unsigned claim = 0;
	for (size_t i = 0; i < router->mount_count; i++)
		if (router->mounts[i].claims && (claim++, router->mounts[i].claims(req)))
			found |= UINT64_C(1) << claim;
	return found ? found : 1;
}

static bool entry_matches(const struct entry *entry, const struct http_target *target)
{
	size_t known = target->segment_count;
	if (!target->complete && !entry->takes_raw)
		return false;
	/* A rest begins behind a slash, and may be empty there. */
	if (entry->takes_rest
			? entry->segment_count > known || !target->segments[entry->segment_count]
			: entry->segment_count != known)
		return false;
	return segments_match(entry, target);
}

static bool segments_match(const struct entry *entry, const struct http_target *target)
{
	const char *p = entry->pattern + 1;
	for (size_t i = 0; i < entry->segment_count; i++) {
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

/* Both match. */
static bool is_closer(const struct entry *a, const struct entry *b)
{
	if (a->literals != b->literals)
		return a->literals > b->literals;
	if (a->takes_rest != b->takes_rest)
		return b->takes_rest;
	if (a->segment_count != b->segment_count)
		return a->segment_count > b->segment_count;
	if (a->takes_raw != b->takes_raw)
		return b->takes_raw;
	return a->route && !b->route;
}

static bool answers(const struct http_route *route, bool method_known, enum http_method method)
{
	if (route->method == HTTP_ANY)
		return true;
	return method_known &&
	       (route->method == method || (route->method == HTTP_GET && method == HTTP_HEAD));
}

static unsigned methods_of(const struct http_route *route)
{
	if (route->method == HTTP_ANY)
		return (1u << HTTP_ANY) - 1;
	unsigned head = route->method == HTTP_GET ? 1u << HTTP_HEAD : 0;
	return 1u << route->method | head | 1u << HTTP_OPTIONS;
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

bool http_pattern_find(const char *pattern, const char *name, struct http_param_place *ret)
{
	size_t index = 0;
	for (const char *p = pattern + 1; *p; index++) {
		size_t len = strcspn(p, "/");
		bool last = p[len] == '\0';
		const char *end = p + len - 1;
		if (p[0] == '{' && *end == '}') {
			size_t stars =
				last ? (end[-1] == '*') + (end[-1] == '*' && end[-2] == '*') : 0;
			size_t name_len = len - 2 - stars;
			*ret = (struct http_param_place){(enum http_param_kind)stars, index};
			if (name ? strlen(name) == name_len && strncmp(p + 1, name, name_len) == 0
				 : stars > 0)
				return true;
		}
		p += len + !last;
	}
	return false;
}
