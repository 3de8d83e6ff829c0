/*
 * /volumecontent/{volume}: directories (dir), what is at a path (path), and a file's bytes to read
 * (file). All of it happens inside, with the volume as the root (volume_file_begin).
 */
#include "dialect/e2b/volumes.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIRECTORY_MODE 0755

/* ---- one question, one answer ---- */

struct path_call {
	struct http_request *req;
	struct volume *volume;
	struct file_call *file;
	char *path;
	int status;   /* of the answer; 204 is one without an entry in it */
	int64_t mode; /* to be set afterwards; -1: none */
	struct buf body;
	struct json_writer json;
	struct entry_writer entry;
};

static void call_free(struct path_call *call)
{
	buf_finish(&call->body);
	free(call->path);
	free(call);
}

static void call_aborted(void *arg)
{
	struct path_call *call = arg;
	file_cancel(call->file);
	call_free(call);
}

static void call_entry(void *arg, const struct file_entry *entry)
{
	struct path_call *call = arg;
	call->body.len = 0; /* the last one counts */
	call->json.need_comma = call->entry.is_open = false;
	entry_begin_in_volume(&call->entry, entry);
}

static void call_done(void *arg, const struct file_result *result, const struct error *e);

static const struct file_events call_events = {.entry = call_entry, .done = call_done};

static struct file_request request_for(const char *path, enum file_op op, unsigned flags)
{
	struct file_request request = {
		.fixed = {.op = op, .flags = flags, .length = RECORD_UNKNOWN, .limit = UINT64_MAX}};
	request.text[FILE_CWD] = "/";
	request.text[FILE_PATH] = path;
	return request;
}

static void call_fail(struct path_call *call, const struct error *why)
{
	struct error e;
	struct http_request *req = call->req;
	e2b_volume_explain(call->path, why, &e);
	call_free(call);
	http_respond_error(req, &e);
}

/* After the owner, because a new one takes set-id bits away. */
static int set_mode(struct path_call *call, struct error *e)
{
	struct file_request request = request_for(call->path, FILE_CHMOD, FILE_FOLLOW);
	request.fixed.mode = (uint32_t)call->mode;
	call->mode = -1;
	return volume_file_begin(call->volume, &request, &call_events, call, &call->file, e);
}

static void call_done(void *arg, const struct file_result *result, const struct error *why)
{
	struct path_call *call = arg;
	struct http_request *req = call->req;
	struct error e;
	int status = call->status;
	(void)result;
	if (why) {
		call_fail(call, why);
		return;
	}
	if (call->mode >= 0) {
		if (set_mode(call, &e) < 0)
			call_fail(call, &e);
		return;
	}
	entry_end(&call->entry);
	struct buf body = call->body;
	call->body = (struct buf){0};
	call_free(call);
	if (status == 204)
		buf_finish(&body);
	http_respond(req, status, "application/json; charset=utf-8", &body);
}

static int call_begin(struct http_request *req, struct volume *v, int status, int64_t mode,
	const struct file_request *request, struct error *e)
{
	struct path_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	*call = (struct path_call){.req = req,
		.volume = v,
		.path = e2b_copy(request->text[FILE_PATH]),
		.status = status,
		.mode = mode};
	call->json.out = &call->body;
	call->entry.json = &call->json;
	int r = volume_file_begin(v, request, &call_events, call, &call->file, e);
	if (r < 0)
		call_free(call);
	else
		http_on_abort(req, call_aborted, call);
	return r;
}

/* ---- at a path ---- */

static int begin_stat(struct http_request *req, struct volume *v, const char *path, struct error *e)
{
	struct file_request request = request_for(path, FILE_STAT, 0);
	return call_begin(req, v, 200, -1, &request, e);
}

static void handle_stat(struct http_request *req)
{
	e2b_volume_serve(req, begin_stat);
}

static int begin_remove(
	struct http_request *req, struct volume *v, const char *path, struct error *e)
{
	struct file_request request = request_for(path, FILE_REMOVE, FILE_RECURSIVE);
	if (strcmp(path, "/") == 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "path", "the root of a volume cannot be removed");
	return call_begin(req, v, 204, -1, &request, e);
}

static void handle_remove(struct http_request *req)
{
	e2b_volume_serve(req, begin_remove);
}

struct update_body {
	int64_t uid, gid, mode; /* -1: as it is */
};

static const struct json_field update_fields[] = {
	{"uid", JSON_INTEGER, offsetof(struct update_body, uid), 0, 0, VOLUME_OWNER_MAX},
	{"gid", JSON_INTEGER, offsetof(struct update_body, gid), 0, 0, VOLUME_OWNER_MAX},
	{"mode", JSON_INTEGER, offsetof(struct update_body, mode), 0, 0, VOLUME_MODE_MAX},
};

static int decode_update(const struct http_request *req, struct update_body *ret, struct error *e)
{
	cJSON *body = NULL;
	*ret = (struct update_body){-1, -1, -1};
	if (e2b_parse_body(req, &body, e) < 0)
		return -1;
	int r = json_decode_known(body, update_fields, ARRAY_LEN(update_fields), "", ret, e);
	cJSON_Delete(body);
	return r;
}

static int begin_update(
	struct http_request *req, struct volume *v, const char *path, struct error *e)
{
	char uid[16] = "", owner[32];
	struct update_body body;
	struct file_request request = request_for(path, FILE_STAT, FILE_FOLLOW);
	if (decode_update(req, &body, e) < 0)
		return -1;
	if (body.uid < 0 && body.gid < 0) {
		request.fixed.op = body.mode < 0 ? FILE_STAT : FILE_CHMOD;
		request.fixed.mode = body.mode < 0 ? 0 : (uint32_t)body.mode;
		return call_begin(req, v, 200, -1, &request, e);
	}
	if (body.uid >= 0)
		snprintf(uid, sizeof uid, "%d", (int)body.uid);
	snprintf(owner, sizeof owner, body.gid < 0 ? "%s" : "%s:%d", uid, (int)body.gid);
	request.fixed.op = FILE_CHOWN;
	request.text[FILE_OWNER] = owner;
	return call_begin(req, v, 200, body.mode, &request, e);
}

static void handle_update(struct http_request *req)
{
	e2b_volume_serve(req, begin_update);
}

/* ---- directories ---- */

static int begin_make_dir(
	struct http_request *req, struct volume *v, const char *path, struct error *e)
{
	struct volume_make make;
	if (e2b_volume_make(req, DIRECTORY_MODE, &make, e) < 0)
		return -1;
	struct file_request request = request_for(
		path, FILE_MKDIR, FILE_HAS_MODE | (make.force ? FILE_PARENTS | FILE_EXIST_OK : 0));
	request.fixed.mode = make.mode;
	request.text[FILE_OWNER] = make.owner;
	return call_begin(req, v, 201, -1, &request, e);
}

static void handle_make_dir(struct http_request *req)
{
	e2b_volume_serve(req, begin_make_dir);
}

static const struct listing_form list_form = {
	json_begin_array, entry_begin_in_volume, json_end_array, e2b_volume_explain};

static int begin_list(struct http_request *req, struct volume *v, const char *path, struct error *e)
{
	int64_t depth = 1;
	struct file_request request = request_for(path, FILE_LIST, 0);
	if (query_optional_number(req, "depth", 0, UINT32_MAX, &depth, e) < 0)
		return -1;
	request.fixed.depth = depth > 0 ? (uint32_t)depth : 1;
	listing_run(e2b_volume_answer(req, &listing_answer), path,
		&(struct op_files){.request = request}, &list_form);
	return 0;
}

static void handle_list(struct http_request *req)
{
	e2b_volume_serve(req, begin_list);
}

/* ---- a file's bytes ---- */

static int begin_read(struct http_request *req, struct volume *v, const char *path, struct error *e)
{
	const struct download_target target = {.given = path, .path = path, .cwd = "/"};
	(void)v;
	(void)e;
	download_run(e2b_volume_answer(req, &download_form), &target);
	return 0;
}

static void handle_read(struct http_request *req)
{
	e2b_volume_serve(req, begin_read);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/volumecontent/{volume}/path", handle_stat, 0},
	{HTTP_PATCH, "/volumecontent/{volume}/path", handle_update, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/volumecontent/{volume}/path", handle_remove, 0},
	{HTTP_GET, "/volumecontent/{volume}/dir", handle_list, 0},
	{HTTP_POST, "/volumecontent/{volume}/dir", handle_make_dir, E2B_BODY_LIMIT},
	{HTTP_GET, "/volumecontent/{volume}/file", handle_read, 0},
};

const struct route_table e2b_volume_content_table = ROUTE_TABLE(routes);
