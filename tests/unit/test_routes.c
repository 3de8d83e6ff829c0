/* api/openapi.yaml and the route table say the same. The path of the file is the one argument. */
#include <stdlib.h>

#include "api/api.h"
#include "check.h"

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

static bool is_served(const char *route)
{
	for (size_t i = 0; api_route_at(i)->pattern; i++) {
		char name[160];
		snprintf(name, sizeof name, "%s %s", method_name(api_route_at(i)->method),
			api_route_at(i)->pattern);
		if (strcmp(name, route) == 0)
			return true;
	}
	return false;
}

static void documents_every_route(void)
{
	read_document();
	for (size_t i = 0; api_route_at(i)->pattern; i++) {
		char name[160];
		snprintf(name, sizeof name, "%s %s", method_name(api_route_at(i)->method),
			api_route_at(i)->pattern);
		if (!is_documented(name))
			printf("# not documented: %s\n", name);
		CHECK(is_documented(name));
	}
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

static const struct check_test tests[] = {
	TEST(documents_every_route),
	TEST(serves_everything_that_is_documented),
};

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	document = argv[1];
	return RUN_TESTS(tests);
}
