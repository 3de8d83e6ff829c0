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

int files_begin_at(const struct files_place *at, const struct file_request *request,
	const struct file_events *events, void *arg, struct file_call **ret, struct error *e)
{
	if (at->volume)
		return volume_file_begin(at->volume, request, events, arg, ret, e);
	return file_begin(at->sandbox, ENVD_FILE_USER, request, events, arg, ret, e);
}

static int begin(
	struct http_request *req, const char *given, struct envd_actor *actor, struct error *e)
{
	const struct files_place at = {.sandbox = envd_sandbox(req)};
	struct download_target target = {.given = given, .path = envd_path(given, e)};
	if (!target.path || files_actor(req, actor, e) < 0)
		return -1;
	target.user = actor->user;
	target.cwd = actor->cwd;
	return download_begin(req, &at, &target, e);
}

static void handle_download(struct http_request *req)
{
	struct error e = {0}, explained;
	const char *path = http_query(req, "path");
	struct envd_actor actor = {0};
	if (!path)
		path = "";
	if (begin(req, path, &actor, &e) == 0)
		return;
	files_explain(path, actor.user, &e, &explained);
	http_respond_error(req, &explained);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/files", handle_download, 0},
};

const struct e2b_table files_download_table = E2B_TABLE(routes);
