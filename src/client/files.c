/* Files of a sandbox: their content, and archives of them. */
#include "client/files.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "client/again.h"
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

/* ---- read ---- */

/* What was read of a file, and which file that was. */
struct reading {
	bunker_data_fn *data;
	void *arg;
	struct again again;
	int64_t position;
	struct bunker_entry file; /* once the connection is lost, as it was at first */
};

static int files_take_data(void *arg, const void *data, size_t size)
{
	struct reading *r = arg;
	client_again_progress(&r->again);
	r->position += (int64_t)size;
	return r->data(r->arg, data, size);
}

static int read_once(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, struct reading *r, struct bunker_error *e)
{
	autobuf target = {0};
	client_files_target(&target, sandbox_id, "/files", path, place);
	if (r->position > 0)
		buf_printf(&target, "&offset=%lld", (long long)r->position);
	return client_call_bytes(b, &target, "*/*", files_take_data, r, e);
}

static bool is_same_file(const struct bunker_entry *a, const struct bunker_entry *b)
{
	return a->size == b->size && strcmp(a->modified_at, b->modified_at) == 0;
}

/* A file that was changed meanwhile has no rest that fits. */
static int check_unchanged(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, const struct bunker_entry *before, struct bunker_error *e)
{
	struct bunker_entry now;
	if (bunker_file_stat(b, sandbox_id, path, true, place, &now, e) < 0)
		return -1;
	bool same = is_same_file(before, &now);
	bunker_entry_finish(&now);
	return same ? 0
		    : client_fail(e, BUNKER_FILE_CHANGED,
			      "the file was changed while the connection was lost");
}

int bunker_file_read(struct bunker *b, const char *sandbox_id, const char *path,
	const struct bunker_place *place, bunker_data_fn *data, void *arg, struct bunker_error *e)
{
	struct reading reading = {.data = data, .arg = arg, .again.bunker = b};
	bool patient = client_call_patience(b) > 0;
	struct bunker_error why;
	if (patient && bunker_file_stat(b, sandbox_id, path, true, place, &reading.file, &why) < 0)
		patient = false;
	int r = read_once(b, sandbox_id, path, place, &reading, &why);
	while (r < 0 && patient && client_again(&reading.again, &why)) {
		r = check_unchanged(b, sandbox_id, path, place, &reading.file, &why);
		if (r == 0 && reading.position != reading.file.size)
			r = read_once(b, sandbox_id, path, place, &reading, &why);
	}
	if (r < 0 && e)
		*e = why;
	if (reading.file.json)
		bunker_entry_finish(&reading.file);
	return r;
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
