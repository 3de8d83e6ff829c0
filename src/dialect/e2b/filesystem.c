/* Stat, MakeDir, Move and Remove: one question, one answer. */
#include "dialect/e2b/filesystem.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct path_message {
	const char *path, *source, *destination;
};

static const struct json_field path_fields[] = {
	{"path", JSON_STRING, offsetof(struct path_message, path), 0, 0, FILESYSTEM_PATH_MAX},
};

static const struct json_field move_fields[] = {
	{"source", JSON_STRING, offsetof(struct path_message, source),
		JSON_REQUIRED | JSON_NOT_EMPTY, 0, FILESYSTEM_PATH_MAX},
	{"destination", JSON_STRING, offsetof(struct path_message, destination),
		JSON_REQUIRED | JSON_NOT_EMPTY, 0, FILESYSTEM_PATH_MAX},
};

int filesystem_request(struct http_request *req, const char *path, enum file_op op, unsigned flags,
	struct file_request *ret, struct error *e)
{
	struct envd_actor actor;
	const char *resolved = envd_path(path, e);
	if (!resolved || envd_actor(req, NULL, &actor, e) < 0)
		return -1;
	*ret = (struct file_request){
		.fixed = {.op = op, .flags = flags, .length = RECORD_UNKNOWN, .limit = UINT64_MAX}};
	ret->text[FILE_PATH] = resolved;
	ret->text[FILE_CWD] = actor.cwd;
	if (op == FILE_MKDIR || op == FILE_MOVE)
		ret->text[FILE_OWNER] = actor.owner;
	return 0;
}

void filesystem_explain(const char *path, const struct error *why, struct error *e)
{
	*e = *why;
	if (strcmp(why->field, "user") == 0)
		error_set(e, ERROR_UNAUTHORIZED, "invalid username");
	else if (why->code == ERROR_NOT_FOUND)
		error_set(e, ERROR_NOT_FOUND, "path '%.250s' does not exist", path);
	else if (why->code == ERROR_NOT_A_DIRECTORY)
		error_set(e, ERROR_NOT_A_DIRECTORY, "path '%.250s' is not a directory", path);
	else if (why->code == ERROR_IS_A_DIRECTORY)
		error_set(e, ERROR_IS_A_DIRECTORY, "path '%.250s' is a directory", path);
}

/* ---- one call ---- */

struct filesystem_call {
	struct http_request *req;
	struct file_call *file;
	char *path;
	bool is_mkdir, is_second; /* what is in the way of a mkdir was asked about */
	uint32_t mode;            /* of what was found */
	struct buf body;
	struct json_writer json;
	struct entry_writer entry;
};

static void call_free(struct filesystem_call *call)
{
	buf_finish(&call->body);
	free(call->path);
	free(call);
}

static void call_aborted(void *arg)
{
	struct filesystem_call *call = arg;
	file_cancel(call->file);
	call_free(call);
}

static void call_fail(struct filesystem_call *call, const struct error *why)
{
	struct error e;
	struct http_request *req = call->req;
	filesystem_explain(call->path, why, &e);
	call_free(call);
	http_respond_error(req, &e);
}

static void call_entry(void *arg, const struct file_entry *entry)
{
	struct filesystem_call *call = arg;
	call->mode = entry->mode;
	json_key(&call->json, "entry");
	entry_begin(&call->entry, entry);
}

static void call_attribute(void *arg, const struct file_attribute *attribute)
{
	entry_attribute(&((struct filesystem_call *)arg)->entry, attribute);
}

static void call_done(void *arg, const struct file_result *result, const struct error *e);

static const struct file_events call_events = {
	.entry = call_entry, .attribute = call_attribute, .done = call_done};

/* A directory in the way is told apart from anything else: clients take it for granted. */
static int ask_what_is_there(struct filesystem_call *call, struct error *e)
{
	struct file_request request;
	call->is_second = true;
	if (filesystem_request(call->req, call->path, FILE_STAT, FILE_FOLLOW, &request, e) < 0)
		return -1;
	return file_begin(envd_sandbox(call->req), ENVD_FILE_USER, &request, &call_events, call,
		&call->file, e);
}

static void refuse_mkdir(struct filesystem_call *call)
{
	struct error e;
	if (S_ISDIR(call->mode))
		error_set(&e, ERROR_ALREADY_EXISTS, "directory already exists: %.250s", call->path);
	else
		error_set(&e, ERROR_NOT_A_DIRECTORY,
			"path already exists but it is not a directory: %.200s", call->path);
	call_fail(call, &e);
}

static void call_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct filesystem_call *call = arg;
	struct http_request *req = call->req;
	struct error second;
	(void)result;
	if (call->is_second && !e) {
		refuse_mkdir(call);
	} else if (e && call->is_mkdir && !call->is_second && e->code == ERROR_ALREADY_EXISTS) {
		if (ask_what_is_there(call, &second) < 0)
			call_fail(call, &second);
	} else if (e) {
		call_fail(call, e);
	} else {
		entry_end(&call->entry);
		json_end_object(&call->json);
		struct buf body = call->body;
		call->body = (struct buf){0};
		call_free(call);
		connect_respond(req, &body);
	}
}

static int call_begin(struct http_request *req, const char *path,
	const struct file_request *request, struct error *e)
{
	struct filesystem_call *call = calloc(1, sizeof *call);
	if (!call || !(call->path = strdup(path)))
		abort();
	call->req = req;
	call->is_mkdir = request->fixed.op == FILE_MKDIR;
	call->json.out = &call->body;
	call->entry.json = &call->json;
	json_begin_object(&call->json);
	int r = file_begin(
		envd_sandbox(req), ENVD_FILE_USER, request, &call_events, call, &call->file, e);
	if (r < 0)
		call_free(call);
	else
		http_on_abort(req, call_aborted, call);
	return r;
}

/* ---- the calls ---- */

static int begin_on_path(struct http_request *req, const cJSON *message, enum file_op op,
	unsigned flags, struct error *e)
{
	struct path_message fields = {.path = ""};
	struct file_request request;
	if (json_decode_known(message, path_fields, ARRAY_LEN(path_fields), "", &fields, e) < 0 ||
		filesystem_request(req, fields.path, op, flags, &request, e) < 0)
		return -1;
	if (op == FILE_MKDIR)
		request.fixed.mode = 0755;
	return call_begin(req, fields.path, &request, e);
}

static int begin_move(struct http_request *req, const cJSON *message, struct error *e)
{
	struct path_message fields = {0};
	struct file_request request;
	if (json_decode_known(message, move_fields, ARRAY_LEN(move_fields), "", &fields, e) < 0 ||
		filesystem_request(req, fields.source, FILE_MOVE,
			ENTRY_FLAGS | FILE_PARENTS | FILE_OVERWRITE, &request, e) < 0)
		return -1;
	request.text[FILE_OTHER] = envd_path(fields.destination, e);
	return request.text[FILE_OTHER] ? call_begin(req, fields.source, &request, e) : -1;
}

static void handle(struct http_request *req, enum file_op op, unsigned flags)
{
	struct error e = {0}, explained;
	cJSON *message = connect_request(req);
	if (!message)
		return;
	int r = op == FILE_MOVE ? begin_move(req, message, &e)
				: begin_on_path(req, message, op, flags, &e);
	cJSON_Delete(message);
	if (r < 0) {
		filesystem_explain("", &e, &explained);
		http_respond_error(req, &explained);
	}
}

static void handle_stat(struct http_request *req)
{
	handle(req, FILE_STAT, ENTRY_FLAGS);
}

static void handle_make_dir(struct http_request *req)
{
	handle(req, FILE_MKDIR, ENTRY_FLAGS | FILE_PARENTS | FILE_HAS_MODE);
}

static void handle_move(struct http_request *req)
{
	handle(req, FILE_MOVE, 0);
}

static void handle_remove(struct http_request *req)
{
	handle(req, FILE_REMOVE, FILE_RECURSIVE | FILE_EXIST_OK);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/Stat", handle_stat, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/filesystem.Filesystem/MakeDir", handle_make_dir, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/filesystem.Filesystem/Move", handle_move, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/filesystem.Filesystem/Remove", handle_remove, CONNECT_BODY_LIMIT},
};

const struct e2b_table filesystem_table = E2B_TABLE(routes);
