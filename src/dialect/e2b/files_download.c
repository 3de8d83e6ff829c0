/* GET /files?path=…: a file of a sandbox's. */
#include <stdio.h>
#include <string.h>

#include "dialect/e2b/files.h"

int files_actor(struct http_request *req, struct envd_actor *ret, struct error *e)
{
	const char *name = http_query(req, "username");
	return envd_actor(req, name && name[0] ? name : NULL, ret, e);
}

void files_explain(const char *path, const char *user, const struct error *why, struct error *e)
{
	*e = *why;
	if (strcmp(why->field, "user") == 0)
		error_set(e, ERROR_UNAUTHORIZED,
			"error looking up user '%.64s': user: unknown user %.64s", user ? user : "",
			user ? user : "");
	else if (why->code == ERROR_NOT_FOUND)
		error_set(e, ERROR_NOT_FOUND, "path '%.250s' does not exist", path);
	else if (why->code == ERROR_IS_A_DIRECTORY)
		error_set(e, ERROR_IS_A_DIRECTORY, "path '%.250s' is a directory", path);
}

static void handle_download(struct http_request *req)
{
	struct error e = {0};
	const char *given = http_query(req, "path");
	struct envd_actor actor = {0};
	struct answer *a = envd_answer(req, &download_form);
	struct download_target target = {.given = given ? given : ""};
	target.path = envd_path(target.given, &e);
	int r = target.path ? files_actor(req, &actor, &e) : -1;
	target.user = actor.user;
	target.cwd = actor.cwd;
	if (r < 0)
		download_refuse(a, &target, &e);
	else
		download_run(a, &target);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/files", handle_download, 0},
};

const struct route_table files_download_table = ROUTE_TABLE(routes);
