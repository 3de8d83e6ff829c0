/* Stat, MakeDir, Move and Remove: one question, one answer. */
#include "dialect/e2b/filesystem.h"
#include "op/files.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct path_message {
	const char *path, *source, *destination;
};

static const struct json_field path_fields[] = {
	{"path", FIELD_TEXT, offsetof(struct path_message, path), 0, 0, FILESYSTEM_PATH_MAX},
};

static const struct json_field move_fields[] = {
	{"source", FIELD_TEXT, offsetof(struct path_message, source),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, FILESYSTEM_PATH_MAX},
	{"destination", FIELD_TEXT, offsetof(struct path_message, destination),
		FIELD_REQUIRED | FIELD_NOT_EMPTY, 0, FILESYSTEM_PATH_MAX},
};

int filesystem_request(struct http_request *req, const char *path, enum file_op op, unsigned flags,
	struct op_files *ret, struct error *e)
{
	const char *resolved = envd_path(path, e);
	*ret = (struct op_files){.as_root = true,
		.request = {.fixed = {.op = op,
				    .flags = flags,
				    .length = RECORD_UNKNOWN,
				    .limit = UINT64_MAX},
			.text = {[FILE_PATH] = resolved}}};
	return resolved ? envd_user(req, &ret->user, e) : -1;
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
	const char *path;
	bool is_mkdir, is_second; /* what is in the way of a mkdir was asked about */
	uint32_t mode;            /* of what was found */
	struct json_writer json;
	struct entry_writer entry;
};

/* A directory in the way is told apart from anything else: clients take it for granted. */
static int refuse_mkdir(const struct filesystem_call *call, struct error *e)
{
	if (S_ISDIR(call->mode))
		return error_set(
			e, ERROR_ALREADY_EXISTS, "directory already exists: %.250s", call->path);
	return error_set(e, ERROR_NOT_A_DIRECTORY,
		"path already exists but it is not a directory: %.200s", call->path);
}

static int filesystem_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct filesystem_call *call = a->own;
	if (event->kind == OP_ENTRY) {
		call->mode = event->entry->mode;
		json_key(&call->json, "entry");
		entry_begin(&call->entry, event->entry);
	} else if (event->kind == OP_ATTRIBUTE) {
		entry_attribute(&call->entry, event->attribute);
	} else if (call->is_second) {
		return refuse_mkdir(call, e);
	} else {
		entry_end(&call->entry);
		json_end_object(&call->json);
	}
	return 0;
}

static enum answer_failure filesystem_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	struct filesystem_call *call = a->own;
	struct op_files request;
	struct error why = *e;
	bool in_the_way =
		event && call->is_mkdir && !call->is_second && e->code == ERROR_ALREADY_EXISTS;
	if (in_the_way && filesystem_request(a->req, call->path, FILE_STAT, FILE_FOLLOW, &request,
				  &why) == 0) {
		call->is_second = true;
		a->op = op_files(&a->call, &request);
		return ANSWER_RETRY;
	}
	filesystem_explain(call->path, &why, e);
	return ANSWER_ERROR;
}

static const struct answer_form call_form = {.type = "application/json",
	.pace = ANSWER_WHOLE,
	.own_size = sizeof(struct filesystem_call),
	.put = filesystem_put,
	.fail = filesystem_fail};

static void call_run(struct http_request *req, const char *path, const struct op_files *request)
{
	struct answer *a = envd_answer(req, &call_form);
	struct filesystem_call *call = a->own;
	call->path = http_copy(req, path);
	call->is_mkdir = request->request.fixed.op == FILE_MKDIR;
	call->json.out = &a->out;
	call->entry.json = &call->json;
	json_begin_object(&call->json);
	a->op = op_files(&a->call, request);
	answer_run(a);
}

/* ---- the calls ---- */

static int begin_on_path(struct http_request *req, const cJSON *message, enum file_op op,
	unsigned flags, struct error *e)
{
	struct path_message fields = {.path = ""};
	struct op_files request;
	if (json_decode_known(message, path_fields, ARRAY_LEN(path_fields), "", &fields, e) < 0 ||
		filesystem_request(req, fields.path, op, flags, &request, e) < 0)
		return -1;
	if (op == FILE_MKDIR)
		request.request.fixed.mode = 0755;
	call_run(req, fields.path, &request);
	return 0;
}

static int begin_move(struct http_request *req, const cJSON *message, struct error *e)
{
	struct path_message fields = {0};
	struct op_files request;
	if (json_decode_known(message, move_fields, ARRAY_LEN(move_fields), "", &fields, e) < 0 ||
		filesystem_request(req, fields.source, FILE_MOVE,
			ENTRY_FLAGS | FILE_PARENTS | FILE_OVERWRITE, &request, e) < 0)
		return -1;
	request.request.text[FILE_OTHER] = envd_path(fields.destination, e);
	if (!request.request.text[FILE_OTHER])
		return -1;
	call_run(req, fields.source, &request);
	return 0;
}

static void filesystem_handle(struct http_request *req, enum file_op op, unsigned flags)
{
	struct error e = {0}, explained;
	cJSON *message = rpc_request(req);
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

static void filesystem_handle_stat(struct http_request *req)
{
	filesystem_handle(req, FILE_STAT, ENTRY_FLAGS);
}

static void filesystem_handle_make_dir(struct http_request *req)
{
	filesystem_handle(req, FILE_MKDIR, ENTRY_FLAGS | FILE_PARENTS | FILE_HAS_MODE);
}

static void filesystem_handle_move(struct http_request *req)
{
	filesystem_handle(req, FILE_MOVE, 0);
}

static void filesystem_handle_remove(struct http_request *req)
{
	filesystem_handle(req, FILE_REMOVE, FILE_RECURSIVE | FILE_EXIST_OK);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/Stat", filesystem_handle_stat, RPC_BODY_LIMIT,
		.scope = HTTP_SCOPE_READ},
	{HTTP_POST, "/filesystem.Filesystem/MakeDir", filesystem_handle_make_dir, RPC_BODY_LIMIT},
	{HTTP_POST, "/filesystem.Filesystem/Move", filesystem_handle_move, RPC_BODY_LIMIT},
	{HTTP_POST, "/filesystem.Filesystem/Remove", filesystem_handle_remove, RPC_BODY_LIMIT},
};

const struct route_table filesystem_table = ROUTE_TABLE(routes);
