/*
 * /fs: files written in one call, directories listed, made and removed. Relative paths begin in the
 * sandbox's working directory. What is removed twice was not found the second time, which is no
 * error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "answer/json_body.h"
#include "dialect/agentuity/create.h"
#include "op/files.h"

#define LIST_MAX     10000
#define PATH_LEN_MAX 4095

/* ---- write ---- */

static int agentuity_files_put_written(
	struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_DONE)
		return 0;
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_put_int(&w, "filesWritten", (int64_t)event->result.count);
	json_end_object(&w);
	json_end_object(&w);
	return 0;
}

/* It is told which one it was. */
static enum answer_failure fail_write(
	struct answer *a, struct error *e, const struct op_event *event)
{
	if (event && event->reason == OP_ERROR && e->field[0] == '\0')
		snprintf(e->field, sizeof e->field, "files[%llu]",
			(unsigned long long)event->result.count);
	return agentuity_fail(a, e, event);
}

static void put_files(struct op *op, const struct file_spec *files, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct file_target target = {.path = files[i].path,
			.flags = FILE_PARENTS | (files[i].has_mode ? FILE_HAS_MODE : 0),
			.mode = files[i].mode};
		op_put_file(op, &target, files[i].content, files[i].len);
	}
	op_put(op, &(struct op_item){OP_ITEM_END});
}

static int decode_write(
	struct answer *a, const struct file_spec **files, size_t *count, struct error *e)
{
	const cJSON *body = answer_json(a, e);
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(body, "files");
	if (!body)
		return -1;
	if (!cJSON_IsArray(list))
		return error_set_field(
			e, ERROR_MISSING_FIELD, "files", "\"files\" must be a list of files");
	return agentuity_decode_files(list, "files", &a->call.memory, files, count, e);
}

static void agentuity_files_handle_write(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = agentuity_files_put_written,
		.fail = fail_write};
	struct error e = {0};
	const struct file_spec *files = NULL;
	size_t count = 0;
	struct answer *a = agentuity_answer(req, &form);
	if (decode_write(a, &files, &count, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	/* The operation frees its call's memory once it has begun; the files are put after that. */
	struct scratch memory = a->call.memory;
	a->call.memory = (struct scratch){0};
	a->op = op_files(&a->call,
		&(struct op_files){.request = {.fixed.op = FILE_WRITE,
					   .text[FILE_PATH] = count ? files[0].path : ""}});
	put_files(a->op, files, count);
	scratch_finish(&memory);
	answer_run(a);
}

/* ---- list ---- */

static void agentuity_files_put_entry(struct json_writer *w, const struct file_entry *entry)
{
	char mode[16];
	const char *slash = strrchr(entry->path, '/');
	snprintf(mode, sizeof mode, "%04o", entry->mode & 07777u);
	json_begin_object(w);
	json_put_string(w, "path", slash ? slash + 1 : entry->path);
	json_put_int(w, "size", (int64_t)entry->size);
	json_put_bool(w, "isDir", S_ISDIR(entry->mode));
	json_put_string(w, "mode", mode);
	json_put_time(w, "modTime", entry->mtime_ns / 1000000);
	if (S_ISLNK(entry->mode)) {
		json_put_bool(w, "isSymlink", true);
		json_put_string(w, "linkTarget", entry->target);
	}
	json_end_object(w);
}

static int put_list(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer *w = a->own;
	if (event->kind == OP_ENTRY)
		agentuity_files_put_entry(w, event->entry);
	if (event->kind != OP_DONE)
		return 0;
	if (event->result.truncated)
		return error_set(e, ERROR_QUOTA_EXCEEDED, "the directory has more than %d entries",
			LIST_MAX);
	json_end_array(w);
	json_end_object(w);
	json_end_object(w);
	return 0;
}

static void agentuity_files_handle_list(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct json_writer),
		.put = put_list,
		.fail = agentuity_fail};
	const char *path = http_query(req, "path");
	struct answer *a = agentuity_answer(req, &form);
	struct json_writer *w = a->own;
	w->out = &a->out;
	agentuity_begin_data(w);
	json_begin_object(w);
	json_key(w, "files");
	json_begin_array(w);
	a->op = op_files(&a->call,
		&(struct op_files){.request = {.fixed = {.op = FILE_LIST,
						       .flags = FILE_FOLLOW,
						       .depth = 1,
						       .limit = LIST_MAX},
					   .text = {[FILE_PATH] = path && path[0] ? path : "."}}});
	answer_run(a);
}

/* ---- make and remove ---- */

struct path_body {
	const char *path;
	bool recursive;
};

static const struct json_field path_fields[] = {
	{"path", FIELD_TEXT, offsetof(struct path_body, path), FIELD_REQUIRED | FIELD_NOT_EMPTY, 0,
		PATH_LEN_MAX},
	{"recursive", FIELD_BOOL, offsetof(struct path_body, recursive), 0, 0, 0},
};

struct path_call {
	const char *path;
	bool recursive;
	bool wants_directory; /* of what is removed */
	bool looked;          /* what is removed is known to be what was meant */
	mode_t found;
};

static int path_decode(struct answer *a, struct error *e)
{
	struct path_call *call = a->own;
	struct path_body fields = {0};
	const cJSON *body = answer_json(a, e);
	if (!body ||
		json_decode_known(body, path_fields, ARRAY_LEN(path_fields), "", &fields, e) < 0)
		return -1;
	call->path = http_copy(a->req, fields.path);
	call->recursive = fields.recursive;
	return 0;
}

static void path_begin(struct answer *a, enum file_op op, unsigned flags)
{
	const struct path_call *call = a->own;
	a->op = op_files(
		&a->call, &(struct op_files){.request = {.fixed = {.op = op, .flags = flags},
						     .text = {[FILE_PATH] = call->path}}});
}

static void handle_mkdir(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct path_call),
		.put = agentuity_put_success,
		.fail = agentuity_fail};
	struct error e = {0};
	struct answer *a = agentuity_answer(req, &form);
	const struct path_call *call = a->own;
	if (path_decode(a, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	path_begin(a, FILE_MKDIR, call->recursive ? FILE_PARENTS | FILE_EXIST_OK : 0);
	answer_run(a);
}

static void remove_put_found(struct answer *a, bool found)
{
	struct json_writer w = {.out = &a->out};
	json_begin_object(&w);
	json_put_bool(&w, "success", true);
	json_put_bool(&w, "found", found);
	json_end_object(&w);
}

/* It is there: removes it, if it is what was meant. */
static int remove_looked(struct answer *a, struct error *e)
{
	struct path_call *call = a->own;
	bool is_directory = S_ISDIR(call->found);
	if (is_directory && !call->wants_directory)
		return error_set(e, ERROR_IS_A_DIRECTORY, "%.200s is a directory", call->path);
	if (!is_directory && call->wants_directory)
		return error_set(e, ERROR_NOT_A_DIRECTORY, "%.200s is not a directory", call->path);
	call->looked = true;
	path_begin(a, FILE_REMOVE, call->recursive ? FILE_RECURSIVE : 0);
	return 0;
}

static int remove_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct path_call *call = a->own;
	if (event->kind == OP_ENTRY)
		call->found = event->entry->mode;
	if (event->kind != OP_DONE)
		return 0;
	if (!call->looked)
		return remove_looked(a, e);
	remove_put_found(a, true);
	return 0;
}

static enum answer_failure remove_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	if (!event || event->reason != OP_ERROR || e->code != ERROR_NOT_FOUND)
		return agentuity_fail(a, e, event);
	remove_put_found(a, false);
	return ANSWER_PUT;
}

static void remove_run(struct http_request *req, bool wants_directory)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct path_call),
		.put = remove_put,
		.fail = remove_fail};
	struct error e = {0};
	struct answer *a = agentuity_answer(req, &form);
	struct path_call *call = a->own;
	if (path_decode(a, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	call->wants_directory = wants_directory;
	call->recursive = call->recursive && wants_directory;
	path_begin(a, FILE_STAT, 0);
	answer_run(a);
}

static void handle_rm(struct http_request *req)
{
	remove_run(req, false);
}

static void handle_rmdir(struct http_request *req)
{
	remove_run(req, true);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}", agentuity_files_handle_write, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/list/{id}", agentuity_files_handle_list, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/mkdir/{id}", handle_mkdir, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/rmdir/{id}", handle_rmdir, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/rm/{id}", handle_rm, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_file_table = ROUTE_TABLE(routes);
