/* Files of a sandbox: their content, and archives of them. */
#include "client/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/call.h"
#include "client/failure.h"
#include "client/sandbox.h"
#include "json/json.h"

void client_files_target(struct buf *target, const char *sandbox_id, const char *what,
	const char *path, const struct bunker_place *place)
{
	client_append_sandbox_path(target, sandbox_id, what);
	client_call_append_query(target, "path", path);
	client_call_append_query(target, "user", place ? place->user : NULL);
	client_call_append_query(target, "cwd", place ? place->cwd : NULL);
}

int bunker_file_read(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_data_fn *data, void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	client_files_target(&target, sandbox_id, "/files", path, place);
	return client_call_bytes(b, &target, "*/*", data, arg, e);
}

int bunker_file_write(struct bunker *b, const char *sandbox_id, const char *path, const char *mode,
	const struct bunker_place *place, bunker_read_fn *read, void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	client_files_target(&target, sandbox_id, "/files", path, place);
	client_call_append_query(&target, "mode", mode);
	return client_call_upload(
		b, "PUT", &target, "application/octet-stream", read, arg, &tree, e);
}

int bunker_tar_get(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_data_fn *data, void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	client_files_target(&target, sandbox_id, "/fs/tar", path, place);
	return client_call_bytes(b, &target, "application/x-tar", data, arg, e);
}

int bunker_tar_put(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_read_fn *read, void *arg, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	client_files_target(&target, sandbox_id, "/fs/tar", path, place);
	return client_call_upload(b, "PUT", &target, "application/x-tar", read, arg, &tree, e);
}

int bunker_file_mkdir(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, struct bunker_error *e)
{
	autojson *tree = NULL;
	autobuf target = {0}, body = {0};
	struct json_writer w = {.out = &body};
	client_append_sandbox_path(&target, sandbox_id, "/fs/mkdir");
	json_begin_object(&w);
	client_files_put_place(&w, path, place);
	json_end_object(&w);
	return client_call_json(b, "POST", &target, &body, &tree, e);
}

int bunker_file_remove(struct bunker *b, const char *sandbox_id, const char *path, bool recursive,
	const struct bunker_place *place, struct bunker_error *e)
{
	autobuf target = {0};
	autojson *tree = NULL;
	client_files_target(&target, sandbox_id, "/files", path, place);
	client_call_append_query(&target, "recursive", recursive ? "true" : NULL);
	return client_call_json(b, "DELETE", &target, NULL, &tree, e);
}

/* As base64: it may be any bytes. */
void client_files_put_place(
	struct json_writer *w, const char *path, const struct bunker_place *place)
{
	json_key(w, "pathBase64");
	json_base64(w, path, strlen(path));
	if (place && place->user)
		json_put_string(w, "user", place->user);
	if (place && place->cwd)
		json_put_string(w, "cwd", place->cwd);
}
