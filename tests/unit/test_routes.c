/*
 * The list of dialects: api/openapi.yaml and the native routes say the same, and every dialect has
 * what a router needs. The path of the file is the one argument; "list" prints the
 * routes instead.
 */
#include <stdlib.h>

#include "api/api.h"
#include "check.h"
#include "http/connection.h"
#include "server/dialects.h"

#define ROUTES_MAX 256

static const char *document;
static char documented[ROUTES_MAX][160];
static size_t documented_count;

static const char *method_name(enum http_method method)
{
	static const char *const names[] = {
		"get", "head", "post", "put", "patch", "delete", "options", "any"};
	return names[method];
}

/* Spells a path as the router does whose last parameter takes the rest of the URL. */
static void mark_rest(char path[128])
{
	size_t len = strlen(path);
	CHECK(len > 0 && len + 1 < 128 && path[len - 1] == '}');
	memcpy(path + len - 1, "*}", 3);
}

/* Reads the file as it is written: two spaces and a path, then four spaces and a method. */
static void read_document(void)
{
	char line[512], path[128] = "";
	bool in_paths = false;
	FILE *file = fopen(document, "r");
	CHECK(file != NULL);
	documented_count = 0;
	while (fgets(line, sizeof line, file)) {
		char word[128];
		line[strcspn(line, "\r\n")] = '\0';
		if (line[0] && line[0] != ' ' && line[0] != '#')
			in_paths = strcmp(line, "paths:") == 0;
		if (!in_paths)
			continue;
		if (strncmp(line, "  /", 3) == 0)
			snprintf(path, sizeof path, "%.*s", (int)strcspn(line + 2, ":"), line + 2);
		else if (strcmp(line, "    x-rest: true") == 0)
			mark_rest(path);
		else if (strncmp(line, "    ", 4) == 0 && line[4] != ' ' && path[0] &&
			 sscanf(line, " %127[a-z]:", word) == 1 && strcmp(word, "parameters") != 0)
			snprintf(documented[documented_count++], sizeof documented[0], "%s %s",
				word, path);
	}
	fclose(file);
}

static bool is_documented(const char *route)
{
	for (size_t i = 0; i < documented_count; i++)
		if (strcmp(documented[i], route) == 0)
			return true;
	return false;
}

/* Calls `each` for all routes of a dialect, until it returns true. */
static bool each_route(
	const struct dialect *d, bool (*each)(void *arg, const struct http_route *route), void *arg)
{
	for (size_t i = 0; i < d->area_count; i++)
		for (const struct route_table *const *t = d->areas[i].tables; *t; t++)
			for (size_t k = 0; k < (*t)->count; k++)
				if (each(arg, &(*t)->routes[k]))
					return true;
	return false;
}

static bool route_is(void *arg, const struct http_route *route)
{
	char name[160];
	snprintf(name, sizeof name, "%s %s", method_name(route->method), route->pattern);
	return strcmp(name, arg) == 0;
}

static bool is_served(char *route)
{
	return each_route(&api_dialect, route_is, route);
}

static bool check_documented(void *arg, const struct http_route *route)
{
	char name[160];
	(void)arg;
	snprintf(name, sizeof name, "%s %s", method_name(route->method), route->pattern);
	if (!is_documented(name))
		printf("# not documented: %s\n", name);
	CHECK(is_documented(name));
	return false;
}

static void documents_every_route(void)
{
	read_document();
	each_route(&api_dialect, check_documented, NULL);
}

static void serves_everything_that_is_documented(void)
{
	read_document();
	CHECK(documented_count > 0);
	for (size_t i = 0; i < documented_count; i++) {
		if (!is_served(documented[i]))
			printf("# not served: %s\n", documented[i]);
		CHECK(is_served(documented[i]));
	}
}

static bool check_route(void *arg, const struct http_route *route)
{
	size_t *count = arg;
	CHECK(route->pattern != NULL);
	CHECK(route->handler != NULL);
	(*count)++;
	return false;
}

static void describes_every_dialect(void)
{
	for (size_t i = 0; dialects[i]; i++) {
		size_t count = 0;
		for (size_t k = 0; k < i; k++)
			CHECK(strcmp(dialects[i]->name, dialects[k]->name) != 0);
		for (size_t k = 0; k < dialects[i]->area_count; k++)
			CHECK(!dialects[i]->areas[k].claim || dialects[i]->claims);
		each_route(dialects[i], check_route, &count);
		CHECK(count > 0);
	}
}

/* ---- routing ---- */

static struct {
	struct auth *auth;
	struct server server;
	struct service services[8];
	struct http_mount mounts[512];
	struct http_router *router;
} house;

static void house_open(void)
{
	size_t count = 0;
	house.auth = auth_new(NULL);
	house.server = (struct server){.auth = house.auth};
	for (size_t i = 0; dialects[i]; i++) {
		struct service *s = &house.services[i];
		CHECK(i < ARRAY_LEN(house.services));
		*s = (struct service){.server = &house.server, .dialect = dialects[i]};
		size_t expected = service_mounts(s, NULL);
		CHECK(count + expected <= ARRAY_LEN(house.mounts));
		CHECK(service_mounts(s, house.mounts + count) == expected);
		count += expected;
	}
	CHECK(http_router_create(&house.router, house.mounts, count) == 0);
}

static void house_close(void)
{
	http_router_destroy(house.router);
	auth_free(house.auth);
}

/* "e2b /contexts", or "" when there is no route, and the destination that was found. */
static const char *find_for(const char *line, const char *fields, char destination[128])
{
	static struct http_connection connection;
	static char head[1024], found[256];
	struct http_request *req = &connection.request;
	struct error e;
	snprintf(head, sizeof head, "%s HTTP/1.1\r\n%s\r\n", line, fields);
	req->connection = &connection;
	http_request_begin(&connection);
	CHECK(http_request_parse(req, head, strlen(head), &e) == 0);
	char *text = http_copy(req, req->head.target);
	CHECK(http_split_target(text, &req->target, &e) == 0);
	services_address(req);
	const struct http_destination *d = http_destination(req);
	struct http_match match = http_router_find(
		house.router, req, &req->target, req->head.method_known, req->head.method);
	const struct service *s = match.mount ? match.mount->ctx : NULL;
	snprintf(found, sizeof found, "%s %s", s ? s->dialect->name : "nobody",
		match.route ? match.pattern : "-");
	snprintf(destination, 128, "%u %s %s", d ? d->port : 0, d ? d->id : "", d ? d->name : "");
	http_request_end(req);
	return found;
}

#define ID "k3jx8w2m5q7n4p6r9t1v"

static void gives_every_request_to_its_dialect(void)
{
	static const struct {
		const char *line, *fields, *found, *destination;
	} cases[] = {
		{"GET /health", "Host: localhost\r\n", "native /health", "0  "},
		{"GET /v1/sandboxes", "Host: localhost\r\n", "native /v1/sandboxes", "0  "},
		{"GET /sandboxes/x", "Host: localhost\r\n", "e2b /sandboxes/{id}", "0  "},
		{"GET /e2b/sandboxes/x", "Host: a\r\n", "e2b /e2b/sandboxes/{id}", "0  "},
		{"GET /agentuity/sandbox", "Host: a\r\n", "agentuity /agentuity/sandbox", "0  "},
		{"GET /nothing", "Host: a\r\n", "nobody -", "0  "},
		/* A port of a sandbox has a host name; what the path says comes after it. */
		{"GET /envs", "Host: 49983-" ID ".box.example:3000\r\n", "e2b /envs",
			"49983 " ID " " ID},
		{"GET /contexts", "Host: 49999-" ID ".localhost\r\n", "e2b /contexts",
			"49999 " ID " " ID},
		{"GET /v1/sandboxes", "Host: 8080-" ID ".localhost\r\n", "preview /{rest**}",
			"8080 " ID " " ID},
		{"GET /v1/sandboxes", "Host: 49983-" ID ".localhost\r\n", "e2b -",
			"49983 " ID " " ID},
		/* These are not. */
		{"GET /health", "Host: 49983-" ID "\r\n", "native /health", "0  "},
		{"GET /health", "Host: 49983-" ID "x.localhost\r\n", "native /health", "0  "},
		{"GET /health", "Host: 70000-" ID ".localhost\r\n", "native /health", "0  "},
		{"GET /health", "Host: 0-" ID ".localhost\r\n", "native /health", "0  "},
		{"GET /health", "Host: " ID ".localhost\r\n", "native /health", "0  "},
		/* Headers say the same; a host name counts more. */
		{"GET /envs", "Host: a\r\nE2b-Sandbox-Id: " ID "\r\n", "e2b /envs",
			"49983 " ID " " ID},
		{"GET /contexts",
			"Host: a\r\nE2b-Sandbox-Id: " ID "-x\r\nE2b-Sandbox-Port: 49999\r\n",
			"e2b /contexts", "49999 " ID " " ID "-x"},
		{"GET /x", "Host: a\r\nE2b-Sandbox-Id: " ID "\r\nE2b-Sandbox-Port: 99999\r\n",
			"preview /{rest**}", "99999  " ID},
		{"GET /envs", "Host: a\r\nE2b-Sandbox-Id: nobody\r\n", "e2b /envs",
			"49983  nobody"},
		{"GET /x", "Host: 80-" ID ".a\r\nE2b-Sandbox-Id: other\r\n", "preview /{rest**}",
			"80 " ID " " ID},
		/* A token or a preflight names no sandbox, but whose the request is. */
		{"GET /envs", "Host: a\r\nX-Access-Token: t\r\n", "e2b /envs", "0  "},
		{"OPTIONS /envs",
			"Host: a\r\nOrigin: http://p\r\nAccess-Control-Request-Method: GET\r\n"
			"Access-Control-Request-Headers: e2b-sandbox-id\r\n",
			"e2b -", "0  "},
		/* A signed URL has nothing but its path. */
		{"GET /files", "Host: a\r\n", "e2b /files", "0  "},
	};
	house_open();
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char destination[128];
		CHECK_STR(find_for(cases[i].line, cases[i].fields, destination), cases[i].found);
		CHECK_STR(destination, cases[i].destination);
	}
	house_close();
}

static const struct check_test tests[] = {
	TEST(documents_every_route),
	TEST(serves_everything_that_is_documented),
	TEST(describes_every_dialect),
	TEST(gives_every_request_to_its_dialect),
};

/* Prints each route once for programs: dialect, claim, method, and path below the area's last
 * prefix. */
/* Prints: dialect, claim, "open" or "keyed", body limit, "whole" or "streams", method, pattern,
 * scope. */
static void list_routes(const struct dialect *d)
{
	static const char *const scopes[] = {
		[HTTP_SCOPE_READ] = "read", [HTTP_SCOPE_USE] = "use", [HTTP_SCOPE_ADMIN] = "admin"};
	for (size_t i = 0; i < d->area_count; i++) {
		const char *prefix = "";
		for (const char *const *p = d->areas[i].prefixes; p && *p; p++)
			prefix = *p;
		for (const struct route_table *const *t = d->areas[i].tables; *t; t++)
			for (const struct http_route *r = (*t)->routes;
				r < (*t)->routes + (*t)->count; r++)
				printf("%s %u %s %llu %s %s %s%s %s\n", d->name, d->areas[i].claim,
					d->areas[i].admit ? "keyed" : "open",
					(unsigned long long)r->body_limit,
					r->streams_body ? "streams" : "whole",
					method_name(r->method), prefix, r->pattern,
					scopes[http_route_scope(r)]);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	if (strcmp(argv[1], "list") == 0) {
		for (size_t i = 0; dialects[i]; i++)
			list_routes(dialects[i]);
		return 0;
	}
	document = argv[1];
	return RUN_TESTS(tests);
}
