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

static int put_written(struct answer *a, const struct op_event *event, struct error *e)
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

static void handle_write(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = put_written,
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
	autoscratch memory = a->call.memory;
	a->call.memory = (struct scratch){0};
	a->op = op_files(&a->call,
		&(struct op_files){.request = {.fixed.op = FILE_WRITE,
					   .text[FILE_PATH] = count ? files[0].path : ""}});
	put_files(a->op, files, count);
	answer_run(a);
}

/* ---- list ---- */

static void put_entry(struct json_writer *w, const struct file_entry *entry)
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
		put_entry(w, event->entry);
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

static void handle_list(struct http_request *req)
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
	{"path", JSON_STRING, offsetof(struct path_body, path), JSON_REQUIRED | JSON_NOT_EMPTY, 0,
		PATH_LEN_MAX},
	{"recursive", JSON_BOOL, offsetof(struct path_body, recursive), 0, 0, 0},
};

struct path_call {
	struct http_request *req; /* NULL once the client has gone */
	struct server *server;
	char sandbox_id[ID_SIZE];
	char *tenant, *path;
	bool recursive;
	bool wants_directory; /* of what is removed */
	mode_t found;         /* what is there; 0: nothing */
};

static void path_free(struct path_call *call)
{
	free(call->tenant);
	free(call->path);
	free(call);
}

static void path_aborted(void *arg)
{
	((struct path_call *)arg)->req = NULL;
}

static void path_fail(struct path_call *call, const struct error *e)
{
	if (call->req)
		http_respond_error(call->req, e);
	path_free(call);
}

static struct path_call *path_call_new(struct http_request *req, const struct sandbox *s)
{
	struct error e;
	struct path_body fields = {0};
	struct sandbox_view view;
	cJSON *body = agentuity_body(req);
	if (!body)
		return NULL;
	if (json_decode_known(body, path_fields, ARRAY_LEN(path_fields), "", &fields, &e) < 0) {
		cJSON_Delete(body);
		http_respond_error(req, &e);
		return NULL;
	}
	struct path_call *call = calloc(1, sizeof *call);
	if (!call || !(call->path = strdup(fields.path)) ||
		!(call->tenant = strdup(tenant_of(req))))
		abort();
	call->req = req;
	call->server = server_of(req);
	call->recursive = fields.recursive;
	sandbox_view(s, &view);
	memcpy(call->sandbox_id, view.id, ID_SIZE);
	cJSON_Delete(body);
	http_on_abort(req, path_aborted, call);
	return call;
}

static void begin(struct path_call *call, struct sandbox *s, enum file_op op, unsigned flags,
	const struct file_events *events)
{
	struct error e;
	struct file_call *file;
	const struct file_request request = {
		.fixed = {.op = op, .flags = flags}, .text = {[FILE_PATH] = call->path}};
	if (file_begin(s, NULL, &request, events, call, &file, &e) < 0)
		path_fail(call, &e);
}

static void made_entry(void *arg, const struct file_entry *entry)
{
	(void)arg;
	(void)entry;
}

static void made(void *arg, const struct file_result *result, const struct error *e)
{
	struct path_call *call = arg;
	(void)result;
	if (e) {
		path_fail(call, e);
		return;
	}
	if (call->req)
		agentuity_respond_success(call->req);
	path_free(call);
}

static void handle_mkdir(struct http_request *req)
{
	static const struct file_events events = {.entry = made_entry, .done = made};
	struct sandbox *s = agentuity_sandbox(req);
	struct path_call *call = s ? path_call_new(req, s) : NULL;
	if (call)
		begin(call, s, FILE_MKDIR, call->recursive ? FILE_PARENTS | FILE_EXIST_OK : 0,
			&events);
}

static void respond_found(struct path_call *call, bool found)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	if (call->req) {
		json_begin_object(&w);
		json_put_bool(&w, "success", true);
		json_put_bool(&w, "found", found);
		json_end_object(&w);
		http_respond(call->req, 200, "application/json", &body);
	}
	path_free(call);
}

static void removed(void *arg, const struct file_result *result, const struct error *e)
{
	struct path_call *call = arg;
	(void)result;
	if (e && e->code != ERROR_NOT_FOUND)
		path_fail(call, e);
	else
		respond_found(call, !e);
}

static void looked_entry(void *arg, const struct file_entry *entry)
{
	((struct path_call *)arg)->found = entry->mode;
}

static void looked(void *arg, const struct file_result *result, const struct error *e)
{
	static const struct file_events events = {.done = removed};
	struct path_call *call = arg;
	struct error wrong = {0};
	struct sandbox *s = sandbox_find(call->server->box, call->tenant, call->sandbox_id);
	bool is_directory = S_ISDIR(call->found);
	(void)result;
	if (e && e->code == ERROR_NOT_FOUND) {
		respond_found(call, false);
		return;
	}
	if (!e && !s)
		error_set(&wrong, ERROR_NOT_FOUND, "there is no such sandbox");
	else if (!e && is_directory && !call->wants_directory)
		error_set(&wrong, ERROR_IS_A_DIRECTORY, "%.200s is a directory", call->path);
	else if (!e && !is_directory && call->wants_directory)
		error_set(&wrong, ERROR_NOT_A_DIRECTORY, "%.200s is not a directory", call->path);
	if (e || wrong.code != ERROR_NONE)
		path_fail(call, e ? e : &wrong);
	else
		begin(call, s, FILE_REMOVE, call->recursive ? FILE_RECURSIVE : 0, &events);
}

static void begin_remove(struct http_request *req, bool wants_directory)
{
	static const struct file_events events = {.entry = looked_entry, .done = looked};
	struct sandbox *s = agentuity_sandbox(req);
	struct path_call *call = s ? path_call_new(req, s) : NULL;
	if (!call)
		return;
	call->wants_directory = wants_directory;
	call->recursive = call->recursive && wants_directory;
	begin(call, s, FILE_STAT, 0, &events);
}

static void handle_rm(struct http_request *req)
{
	begin_remove(req, false);
}

static void handle_rmdir(struct http_request *req)
{
	begin_remove(req, true);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/{id}", handle_write, AGENTUITY_BODY_LIMIT},
	{HTTP_GET, "/list/{id}", handle_list, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/mkdir/{id}", handle_mkdir, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/rmdir/{id}", handle_rmdir, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/rm/{id}", handle_rm, AGENTUITY_BODY_LIMIT},
};

const struct route_table agentuity_file_table = ROUTE_TABLE(routes);
