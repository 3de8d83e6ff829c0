/*
 * /fs: files written in one call, directories listed, made and removed. Relative paths begin in the
 * sandbox's working directory. What is removed twice was not found the second time, which is no
 * error.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "dialect/agentuity/create.h"

#define LIST_MAX     10000
#define PATH_LEN_MAX 4095

/* ---- write ---- */

struct write_call {
	struct http_request *req; /* NULL once the client has gone */
	size_t count;
};

static void write_aborted(void *arg)
{
	((struct write_call *)arg)->req = NULL;
}

static void written(void *arg, const struct error *e)
{
	struct write_call call = *(struct write_call *)arg;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	free(arg);
	if (!call.req)
		return;
	if (e) {
		http_respond_error(call.req, e);
		return;
	}
	agentuity_begin_data(&w);
	json_begin_object(&w);
	json_put_int(&w, "filesWritten", (int64_t)call.count);
	json_end_object(&w);
	agentuity_respond_data(call.req, 200, &w);
}

static void handle_write(struct http_request *req)
{
	struct error e = {0};
	autoscratch memory = {0};
	const struct file_spec *files = NULL;
	size_t count = 0;
	struct sandbox *s = agentuity_sandbox(req);
	cJSON *body = s ? agentuity_body(req) : NULL;
	if (!body)
		return;
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(body, "files");
	int r = cJSON_IsArray(list)
			? agentuity_decode_files(list, "files", &memory, &files, &count, &e)
			: error_set_field(&e, ERROR_MISSING_FIELD, "files",
				  "\"files\" must be a list of files");
	if (r < 0) {
		http_respond_error(req, &e);
	} else {
		struct write_call *call = calloc(1, sizeof *call);
		if (!call)
			abort();
		*call = (struct write_call){req, count};
		http_on_abort(req, write_aborted, call);
		files_write(s, &(struct files_owner){0}, files, count, written, call);
	}
	cJSON_Delete(body);
}

/* ---- list ---- */

struct list_call {
	struct http_request *req;
	struct file_call *file;
	struct buf body;
	struct json_writer w;
};

static void list_free(struct list_call *call)
{
	buf_finish(&call->body);
	free(call);
}

static void list_aborted(void *arg)
{
	struct list_call *call = arg;
	file_cancel(call->file);
	list_free(call);
}

static void list_entry(void *arg, const struct file_entry *entry)
{
	struct list_call *call = arg;
	struct json_writer *w = &call->w;
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

static void list_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct list_call *call = arg;
	struct http_request *req = call->req;
	struct error many;
	error_set(&many, ERROR_QUOTA_EXCEEDED, "the directory has more than %d entries", LIST_MAX);
	json_end_array(&call->w);
	json_end_object(&call->w);
	if (e || result->truncated)
		http_respond_error(req, e ? e : &many);
	else
		agentuity_respond_data(req, 200, &call->w);
	list_free(call);
}

static void handle_list(struct http_request *req)
{
	static const struct file_events events = {.entry = list_entry, .done = list_done};
	struct error e;
	const char *path = http_query(req, "path");
	struct sandbox *s = agentuity_sandbox(req);
	if (!s)
		return;
	const struct file_request request = {
		.fixed = {.op = FILE_LIST, .flags = FILE_FOLLOW, .depth = 1, .limit = LIST_MAX},
		.text = {[FILE_PATH] = path && path[0] ? path : "."}};
	struct list_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->w.out = &call->body;
	if (file_begin(s, NULL, &request, &events, call, &call->file, &e) < 0) {
		list_free(call);
		http_respond_error(req, &e);
		return;
	}
	agentuity_begin_data(&call->w);
	json_begin_object(&call->w);
	json_key(&call->w, "files");
	json_begin_array(&call->w);
	http_on_abort(req, list_aborted, call);
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
	struct agentuity *dialect;
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
		!(call->tenant = strdup(agentuity_tenant(req))))
		abort();
	call->req = req;
	call->dialect = agentuity_of(req);
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
	struct sandbox *s = sandbox_find(call->dialect->box, call->tenant, call->sandbox_id);
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

const struct agentuity_table agentuity_file_table = AGENTUITY_TABLE(AGENTUITY_FILES, routes);
