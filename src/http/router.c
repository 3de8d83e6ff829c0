/*
 * Patterns are a tree of segments, made once: a request walks down its own path, trying at each
 * segment the literal of that name and {name}. All that match are looked at, which are few. When
 * several do, literal segments win over {name}, the leftmost difference deciding:
 * "/v1/sandboxes/search" is never taken for "/v1/sandboxes/{id}", whatever the order of the tables.
 * A pattern that ends in {name*} or {name**} wins only when nothing else does, the longest first.
 *
 * Mounts that claim have trees of their own, one for each claim. A request that some claim holds
 * for is looked for in those trees, and any other in the common one. The prefix of a mount is put
 * in front of its patterns here, once.
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
	size_t segment_count; /* without the rest */
	bool takes_rest;
	bool takes_raw;
	uint32_t literals;  /* the first segment is the highest bit: a greater value is closer */
	struct entry *next; /* at the same node */
};

struct node {
	char *segment;         /* NULL: {name}, or the root */
	struct node *literals; /* sorted */
	size_t literal_count;
	struct node *any;      /* {name} */
	struct entry *entries; /* whose segments end here, with or without a rest */
};

/* The routes of one claim; without a function: the routes for unclaimed requests. */
struct tree {
	unsigned (*claims)(const struct http_request *req);
	unsigned claim;
	struct node root;
};

struct http_router {
	struct tree *trees; /* the first is the common one */
	size_t tree_count;
	size_t count;
	struct entry entries[];
};

static int add_mount(struct http_router *router, const struct http_mount *mount);
static struct tree *tree_of(struct http_router *router, const struct http_mount *mount);
static int entry_init(
	struct entry *entry, const struct http_mount *mount, const struct http_route *route);
static int read_pattern(struct entry *entry);
static int node_add(struct node *node, const char *pattern, size_t segments, struct entry *entry);
static void node_finish(struct node *node);
static bool is_closer(const struct entry *a, const struct entry *b);
static bool router_answers(
	const struct http_route *route, bool method_known, enum http_method method);
static unsigned methods_of(const struct http_route *route);

int http_router_create(
	struct http_router **ret, const struct http_mount *mounts, size_t mount_count)
{
	size_t count = mount_count;
	int r = 0;
	for (size_t i = 0; i < mount_count; i++)
		count += mounts[i].route_count;
	struct http_router *router = calloc(1, sizeof *router + count * sizeof router->entries[0]);
	if (!router)
		return -ENOMEM;
	router->trees = calloc(mount_count + 1, sizeof *router->trees);
	router->tree_count = 1;
	r = router->trees ? 0 : -ENOMEM;
	for (size_t i = 0; i < mount_count && r == 0; i++)
		r = add_mount(router, &mounts[i]);
	if (r < 0)
		http_router_destroy(router);
	else
		*ret = router;
	return r;
}

static int add_mount(struct http_router *router, const struct http_mount *mount)
{
	struct tree *tree = tree_of(router, mount);
	bool owns = mount->prefix || mount->claims;
	int r = 0;
	for (size_t i = owns ? 0 : 1; i <= mount->route_count && r == 0; i++) {
		struct entry *entry = &router->entries[router->count++];
		r = entry_init(entry, mount, i > 0 ? &mount->routes[i - 1] : NULL);
		if (r == 0)
			r = node_add(&tree->root, entry->pattern + 1, entry->segment_count, entry);
	}
	return r;
}

static struct tree *tree_of(struct http_router *router, const struct http_mount *mount)
{
	for (size_t i = 0; i < router->tree_count; i++)
		if (router->trees[i].claims == mount->claims &&
			(!mount->claims || router->trees[i].claim == mount->claim))
			return &router->trees[i];
	struct tree *tree = &router->trees[router->tree_count++];
	tree->claims = mount->claims;
	tree->claim = mount->claim;
	return tree;
}

static int entry_init(
	struct entry *entry, const struct http_mount *mount, const struct http_route *route)
{
	struct buf pattern = {0};
	*entry = (struct entry){.mount = mount, .route = route};
	if (mount->prefix)
		buf_append_str(&pattern, mount->prefix);
	buf_append_str(&pattern, route ? route->pattern : "/{rest**}");
	entry->pattern = buf_take_str(&pattern);
	return entry->pattern ? read_pattern(entry) : -ENOMEM;
}

static int read_pattern(struct entry *entry)
{
	const char *pattern = entry->pattern;
	struct http_param_position rest;
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

/* Returns the index of the literal, or the one at which it would be inserted. */
static size_t node_search(const struct node *node, const char *text, size_t len, bool *found)
{
	size_t low = 0, high = node->literal_count;
	*found = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const char *other = node->literals[middle].segment;
		int order = strncmp(text, other, len);
		if (order == 0)
			order = other[len] ? -1 : 0;
		if (order == 0) {
			*found = true;
			return middle;
		}
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static struct node *router_node_child(struct node *node, const char *text, size_t len)
{
	bool found;
	if (text[0] == '{') {
		if (!node->any)
			node->any = calloc(1, sizeof *node->any);
		return node->any;
	}
	size_t at = node_search(node, text, len, &found);
	if (found)
		return &node->literals[at];
	struct node *more = realloc(node->literals, (node->literal_count + 1) * sizeof *more);
	char *segment = strndup(text, len);
	if (more)
		node->literals = more;
	if (!more || !segment) {
		free(segment);
		return NULL;
	}
	memmove(more + at + 1, more + at, (node->literal_count++ - at) * sizeof *more);
	more[at] = (struct node){.segment = segment};
	return &more[at];
}

static int node_add(struct node *node, const char *pattern, size_t segments, struct entry *entry)
{
	for (; segments > 0; segments--) {
		size_t len = strcspn(pattern, "/");
		node = router_node_child(node, pattern, len);
		if (!node)
			return -ENOMEM;
		pattern += len + 1;
	}
	entry->next = node->entries;
	node->entries = entry;
	return 0;
}

static void node_finish(struct node *node)
{
	for (size_t i = 0; i < node->literal_count; i++)
		node_finish(&node->literals[i]);
	if (node->any)
		node_finish(node->any);
	free(node->literals);
	free(node->segment);
	free(node->any);
}

void http_router_destroy(struct http_router *router)
{
	if (!router)
		return;
	for (size_t i = 0; i < router->tree_count && router->trees; i++)
		node_finish(&router->trees[i].root);
	for (size_t i = 0; i < router->count; i++)
		free(router->entries[i].pattern);
	free(router->trees);
	free(router);
}

/* ---- finding ---- */

struct search {
	const struct http_target *target;
	bool method_known;
	enum http_method method;
	const struct entry *best, *owner;
	unsigned allowed;
};

/* A rest begins behind a slash, and may be empty there. */
static bool entry_ends_here(const struct entry *entry, const struct http_target *target, size_t at)
{
	if (!target->complete && !entry->takes_raw)
		return false;
	return entry->takes_rest ? target->segments[at] != NULL : at == target->segment_count;
}

static void router_look_at(struct search *s, const struct entry *entry)
{
	if (!s->owner || is_closer(entry, s->owner))
		s->owner = entry;
	if (!entry->route)
		return;
	s->allowed |= methods_of(entry->route);
	if (router_answers(entry->route, s->method_known, s->method) &&
		(!s->best || is_closer(entry, s->best)))
		s->best = entry;
}

static void router_walk(struct search *s, const struct node *node, size_t at)
{
	const char *segment = s->target->segments[at];
	bool found;
	for (const struct entry *entry = node->entries; entry; entry = entry->next)
		if (entry_ends_here(entry, s->target, at))
			router_look_at(s, entry);
	if (at >= s->target->segment_count)
		return;
	size_t i = node_search(node, segment, strlen(segment), &found);
	if (found)
		router_walk(s, &node->literals[i], at + 1);
	if (node->any && segment[0])
		router_walk(s, node->any, at + 1);
}

/* Calls each claim function once, for all mounts that share it. */
static bool walk_claimed(
	const struct http_router *router, const struct http_request *req, struct search *s)
{
	unsigned (*asked)(const struct http_request *) = NULL;
	unsigned claims = 0;
	bool any = false;
	for (size_t i = 1; i < router->tree_count; i++) {
		const struct tree *tree = &router->trees[i];
		if (tree->claims != asked) {
			asked = tree->claims;
			claims = asked(req);
		}
		if (claims & tree->claim) {
			any = true;
			router_walk(s, &tree->root, 0);
		}
	}
	return any;
}

struct http_match http_router_find(const struct http_router *router, const struct http_request *req,
	const struct http_target *target, bool method_known, enum http_method method)
{
	struct search s = {target, method_known, method};
	if (!walk_claimed(router, req, &s))
		router_walk(&s, &router->trees[0].root, 0);
	const struct entry *found = s.best ? s.best : s.owner;
	return (struct http_match){found ? found->mount : NULL, s.best ? s.best->route : NULL,
		s.best ? s.best->pattern : NULL, s.allowed};
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

static bool router_answers(
	const struct http_route *route, bool method_known, enum http_method method)
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

bool http_pattern_find(const char *pattern, const char *name, struct http_param_position *ret)
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
			*ret = (struct http_param_position){(enum http_param_kind)stars, index};
			if (name ? strlen(name) == name_len && strncmp(p + 1, name, name_len) == 0
				 : stars > 0)
				return true;
		}
		p += len + !last;
	}
	return false;
}
