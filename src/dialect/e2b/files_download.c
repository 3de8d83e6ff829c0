/* GET /files?path=…: a file of a sandbox's. */
#include <stdio.h>
#include <string.h>

#include "dialect/e2b/files.h"

/* Who comes with a signature instead of a token has no other user than the one that it binds. */
int files_user(struct http_request *req, const char **ret, struct error *e)
{
	const char *name = http_query(req, "username");
	bool is_named = name && name[0];
	*ret = is_named ? name : NULL;
	return is_named || !http_header(req, "x-access-token") ? 0 : envd_user(req, ret, e);
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

static void files_download_handle_download(struct http_request *req)
{
	struct error e = {0};
	const char *given = http_query(req, "path");
	struct answer *a = envd_answer(req, &download_form);
	struct download_target target = {.given = given ? given : ""};
	target.path = envd_path(target.given, &e);
	if (!target.path || files_user(req, &target.user, &e) < 0)
		download_refuse(a, &target, &e);
	else
		download_run(a, &target);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/files", files_download_handle_download, 0},
};

const struct route_table files_download_table = ROUTE_TABLE(routes);
