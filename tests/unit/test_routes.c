/*
 * The list of dialects: api/openapi.yaml and the native routes say the same, and every dialect has
 * what a router needs. The path of the file is the one argument.
 */
#include <stdlib.h>

#include "api/api.h"
#include "check.h"
#include "http/router.h"
#include "server/dialects.h"

#define ROUTES_MAX 256

static const char *document;
static char documented[ROUTES_MAX][160];
static size_t documented_count;

static const char *method_name(enum http_method method)
{
	static const char *const names[] = {
		"get", "head", "post", "put", "patch", "delete", "options"};
	return names[method];
}

/* Two spaces and a path, then four spaces and a method: how we write the file. */
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

static void mounts_the_whole_list(void)
{
	struct auth *auth = auth_new();
	struct http_router *router = NULL;
	struct http_mount mounts[512];
	struct service services[8];
	struct server server = {.auth = auth};
	size_t count = 0;
	for (size_t i = 0; dialects[i]; i++) {
		services[i] = (struct service){.server = &server, .dialect = dialects[i]};
		size_t expected = service_mounts(&services[i], NULL);
		CHECK(count + expected <= ARRAY_LEN(mounts));
		CHECK(service_mounts(&services[i], mounts + count) == expected);
		count += expected;
	}
	CHECK(http_router_create(&router, mounts, count) == 0);
	http_router_destroy(router);
	auth_free(auth);
}

static const struct check_test tests[] = {
	TEST(documents_every_route),
	TEST(serves_everything_that_is_documented),
	TEST(describes_every_dialect),
	TEST(mounts_the_whole_list),
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	document = argv[1];
	return RUN_TESTS(tests);
}
