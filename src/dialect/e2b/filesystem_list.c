/*
 * ListDir: what is in a directory, as deep as asked for. A tree may have a million files, so that
 * its entries go out as they are found: nothing is looked for while the client does not read.
 * Errors come before the first entry, or the answer is cut short.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/filesystem.h"

#define HIGH_WATER (128u * 1024)

struct list_message {
	const char *path;
	int64_t depth;
};

static const struct json_field list_fields[] = {
	{"path", JSON_STRING, offsetof(struct list_message, path), 0, 0, FILESYSTEM_PATH_MAX},
	{"depth", JSON_INTEGER, offsetof(struct list_message, depth), 0, 0, UINT32_MAX},
};

struct list_call {
	struct http_request *req;
	struct file_call *file; /* NULL once it is done */
	char *path;
	struct buf out; /* found, not sent */
	struct json_writer json;
	struct entry_writer entry;
	bool streaming, hungry, paused;
	bool broken; /* it cannot be told to the end */
};

static void list_free(struct list_call *call)
{
	buf_finish(&call->out);
	free(call->path);
	free(call);
}

static void list_aborted(void *arg)
{
	struct list_call *call = arg;
	if (call->file)
		file_cancel(call->file);
	list_free(call);
}

/* ---- the answer ---- */

static void list_pump(struct list_call *call)
{
	struct http_request *req = call->req;
	bool last = !call->file;
	if (!call->hungry || (call->out.len == 0 && !last))
		return;
	if (call->broken) {
		list_free(call);
		http_stream_abort(req);
		return;
	}
	struct buf out = call->out;
	call->out = (struct buf){0};
	call->hungry = false;
	if (last)
		list_free(call);
	http_stream_write(req, &out);
	if (last) {
		http_stream_end(req);
	} else if (call->paused) {
		call->paused = false;
		file_resume(call->file);
	}
}

static void list_proceed(void *arg)
{
	struct list_call *call = arg;
	call->hungry = true;
	list_pump(call);
}

static void list_begin_stream(struct list_call *call)
{
	const struct http_generator generator = {list_proceed, list_aborted, call};
	call->streaming = true;
	http_stream_begin(call->req, 200, "application/json", &generator);
}

/* ---- what is found ---- */

static void list_entry(void *arg, const struct file_entry *entry)
{
	struct list_call *call = arg;
	entry_begin(&call->entry, entry);
	if (call->out.len < HIGH_WATER)
		return;
	if (!call->streaming)
		list_begin_stream(call);
	if (!call->hungry && !call->paused) {
		call->paused = true;
		file_pause(call->file);
	}
	list_pump(call);
}

static void list_attribute(void *arg, const struct file_attribute *attribute)
{
	entry_attribute(&((struct list_call *)arg)->entry, attribute);
}

static void list_fail(struct list_call *call, const struct error *why)
{
	struct error e;
	struct http_request *req = call->req;
	filesystem_explain(call->path, why, &e);
	list_free(call);
	http_respond_error(req, &e);
}

static void list_done(void *arg, const struct file_result *result, const struct error *e)
{
	struct list_call *call = arg;
	(void)result;
	call->file = NULL;
	if (e && !call->streaming) {
		list_fail(call, e);
		return;
	}
	call->broken = e != NULL;
	entry_end(&call->entry);
	json_end_array(&call->json);
	json_end_object(&call->json);
	if (call->streaming) {
		list_pump(call);
		return;
	}
	struct http_request *req = call->req;
	struct buf out = call->out;
	call->out = (struct buf){0};
	list_free(call);
	connect_respond(req, &out);
}

static const struct file_events list_events = {
	.entry = list_entry, .attribute = list_attribute, .done = list_done};

static int list_begin(struct http_request *req, const cJSON *message, struct error *e)
{
	struct list_message fields = {.path = ""};
	struct file_request request;
	if (json_decode_known(message, list_fields, ARRAY_LEN(list_fields), "", &fields, e) < 0 ||
		filesystem_request(req, fields.path, FILE_LIST, ENTRY_FLAGS, &request, e) < 0)
		return -1;
	request.fixed.depth = fields.depth > 0 ? (uint32_t)fields.depth : 1;
	struct list_call *call = calloc(1, sizeof *call);
	if (!call || !(call->path = strdup(fields.path)))
		abort();
	call->req = req;
	call->json.out = &call->out;
	call->entry.json = &call->json;
	json_begin_object(&call->json);
	json_key(&call->json, "entries");
	json_begin_array(&call->json);
	int r = file_begin(
		envd_sandbox(req), ENVD_FILE_USER, &request, &list_events, call, &call->file, e);
	if (r < 0)
		list_free(call);
	else
		http_on_abort(req, list_aborted, call);
	return r;
}

static void handle_list_dir(struct http_request *req)
{
	struct error e = {0}, explained;
	cJSON *message = connect_request(req);
	if (!message)
		return;
	if (list_begin(req, message, &e) < 0) {
		filesystem_explain("", &e, &explained);
		http_respond_error(req, &explained);
	}
	cJSON_Delete(message);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/ListDir", handle_list_dir, CONNECT_BODY_LIMIT},
};

const struct e2b_table filesystem_list_table = E2B_TABLE(routes);
