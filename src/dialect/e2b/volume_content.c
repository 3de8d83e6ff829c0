/*
 * /volumecontent/{volume}: directories (dir), what is at a path (path), and a file's bytes to read
 * (file). All of it happens inside, with the volume as the root.
 */
#include "dialect/e2b/volumes.h"
#include "op/files.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DIRECTORY_MODE 0755

/* ---- one question, one answer ---- */

struct volume_entry {
	const char *path;
	struct json_writer json;
	struct entry_writer entry;
};

static int volume_entry_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct volume_entry *own = a->own;
	(void)e;
	if (a->status == 204)
		return 0;
	if (event->kind == OP_ENTRY)
		entry_begin_in_volume(&own->entry, event->entry);
	else if (event->kind == OP_DONE)
		entry_end(&own->entry);
	return 0;
}

static enum answer_failure volume_entry_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct error why = *e;
	if (!event || event->reason != OP_NO_VOLUME)
		e2b_volume_explain(((struct volume_entry *)a->own)->path, &why, e);
	return ANSWER_ERROR;
}

struct answer *volume_entry_answer(struct http_request *req, int status, const char *path)
{
	static const struct answer_form form = {.type = E2B_JSON,
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct volume_entry),
		.put = volume_entry_put,
		.fail = volume_entry_fail};
	struct answer *a = e2b_volume_answer(req, &form);
	struct volume_entry *own = a->own;
	own->path = path;
	own->json.out = &a->out;
	own->entry.json = &own->json;
	a->status = status;
	return a;
}

static struct file_request request_for(const char *path, enum file_op op, unsigned flags)
{
	struct file_request request = {
		.fixed = {.op = op, .flags = flags, .length = RECORD_UNKNOWN, .limit = UINT64_MAX}};
	request.text[FILE_CWD] = "/";
	request.text[FILE_PATH] = path;
	return request;
}

static int volume_entry_run(
	struct http_request *req, int status, const struct file_request *request)
{
	struct answer *a = volume_entry_answer(req, status, request->text[FILE_PATH]);
	a->op = op_files(&a->call, &(struct op_files){.request = *request});
	answer_run(a);
	return 0;
}

/* ---- at a path ---- */

static int begin_stat(struct http_request *req, const char *path, struct error *e)
{
	struct file_request request = request_for(path, FILE_STAT, 0);
	(void)e;
	return volume_entry_run(req, 200, &request);
}

static void volume_content_handle_stat(struct http_request *req)
{
	e2b_volume_serve(req, begin_stat);
}

static int begin_remove(struct http_request *req, const char *path, struct error *e)
{
	struct file_request request = request_for(path, FILE_REMOVE, FILE_RECURSIVE);
	if (strcmp(path, "/") == 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "path", "the root of a volume cannot be removed");
	return volume_entry_run(req, 204, &request);
}

static void volume_content_handle_remove(struct http_request *req)
{
	e2b_volume_serve(req, begin_remove);
}

struct update_body {
	int64_t uid, gid, mode; /* -1: as it is */
};

static const struct json_field update_fields[] = {
	{"uid", FIELD_INTEGER, offsetof(struct update_body, uid), 0, 0, VOLUME_OWNER_MAX},
	{"gid", FIELD_INTEGER, offsetof(struct update_body, gid), 0, 0, VOLUME_OWNER_MAX},
	{"mode", FIELD_INTEGER, offsetof(struct update_body, mode), 0, 0, VOLUME_MODE_MAX},
};

static int volume_content_decode_update(
	struct http_request *req, struct update_body *ret, struct error *e)
{
	cJSON *body = NULL;
	*ret = (struct update_body){-1, -1, -1};
	if (e2b_parse_body(req, &body, e) < 0)
		return -1;
	int r = json_decode_known(body, update_fields, ARRAY_LEN(update_fields), "", ret, e);
	cJSON_Delete(body);
	return r;
}

static int begin_update(struct http_request *req, const char *path, struct error *e)
{
	char uid[16] = "", owner[32];
	struct update_body body;
	struct file_request request = request_for(path, FILE_STAT, FILE_FOLLOW);
	if (volume_content_decode_update(req, &body, e) < 0)
		return -1;
	if (body.uid < 0 && body.gid < 0) {
		request.fixed.op = body.mode < 0 ? FILE_STAT : FILE_CHMOD;
		request.fixed.mode = body.mode < 0 ? 0 : (uint32_t)body.mode;
		return volume_entry_run(req, 200, &request);
	}
	if (body.uid >= 0)
		snprintf(uid, sizeof uid, "%d", (int)body.uid);
	snprintf(owner, sizeof owner, body.gid < 0 ? "%s" : "%s:%d", uid, (int)body.gid);
	request.fixed.op = FILE_CHOWN;
	request.text[FILE_OWNER] = owner;
	if (body.mode >= 0) {
		request.fixed.flags |= FILE_HAS_MODE;
		request.fixed.mode = (uint32_t)body.mode;
	}
	return volume_entry_run(req, 200, &request);
}

static void volume_content_handle_update(struct http_request *req)
{
	e2b_volume_serve(req, begin_update);
}

/* ---- directories ---- */

static int begin_make_dir(struct http_request *req, const char *path, struct error *e)
{
	struct volume_make make;
	if (e2b_volume_make(req, DIRECTORY_MODE, &make, e) < 0)
		return -1;
	struct file_request request = request_for(
		path, FILE_MKDIR, FILE_HAS_MODE | (make.force ? FILE_PARENTS | FILE_EXIST_OK : 0));
	request.fixed.mode = make.mode;
	request.text[FILE_OWNER] = make.owner;
	return volume_entry_run(req, 201, &request);
}

static void volume_content_handle_make_dir(struct http_request *req)
{
	e2b_volume_serve(req, begin_make_dir);
}

static const struct listing_form list_form = {
	json_begin_array, entry_begin_in_volume, json_end_array, e2b_volume_explain};

static int begin_list(struct http_request *req, const char *path, struct error *e)
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

static void volume_content_handle_list(struct http_request *req)
{
	e2b_volume_serve(req, begin_list);
}

/* ---- a file's bytes ---- */

static int begin_read(struct http_request *req, const char *path, struct error *e)
{
	const struct download_target target = {.given = path, .path = path, .cwd = "/"};
	(void)e;
	download_run(e2b_volume_answer(req, &download_form), &target);
	return 0;
}

static void volume_content_handle_read(struct http_request *req)
{
	e2b_volume_serve(req, begin_read);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/volumecontent/{volume}/path", volume_content_handle_stat, 0},
	{HTTP_PATCH, "/volumecontent/{volume}/path", volume_content_handle_update, E2B_BODY_LIMIT},
	{HTTP_DELETE, "/volumecontent/{volume}/path", volume_content_handle_remove, 0},
	{HTTP_GET, "/volumecontent/{volume}/dir", volume_content_handle_list, 0},
	{HTTP_POST, "/volumecontent/{volume}/dir", volume_content_handle_make_dir, E2B_BODY_LIMIT},
	{HTTP_GET, "/volumecontent/{volume}/file", volume_content_handle_read, 0},
};

const struct route_table e2b_volume_content_table = ROUTE_TABLE(routes);
