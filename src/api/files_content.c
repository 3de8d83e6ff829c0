/*
 * …/files/{path*} and …/files?path=: a file's content by GET, HEAD, PUT and DELETE. In the URL's
 * path it is absolute; in the query it may be relative to the working directory.
 */
#include <string.h>

#include "api/files.h"
#include "api/files_read.h"

static void files_content_handle_get(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", "offset", "length", NULL};
	struct error e;
	struct files_actor place;
	struct byte_range range;
	const char *path;
	if (files_query_place(req, known, &place, &path, &e) < 0 ||
		files_parse_range(req, &range, &e) < 0) {
		api_refuse(req, &e);
		return;
	}
	files_read(req, &place, path, &range);
}

/* ---- writing ---- */

static int parse_target(struct http_request *req, struct file_target *t, struct error *e)
{
	int64_t offset = -1;
	bool has_mode;
	t->flags = FILE_PARENTS;
	t->owner = http_query(req, "owner");
	if (files_query_flag(req, "parents", FILE_PARENTS, &t->flags, e) < 0 ||
		files_query_flag(req, "append", FILE_APPEND, &t->flags, e) < 0 ||
		files_query_flag(req, "atomic", FILE_ATOMIC, &t->flags, e) < 0 ||
		files_query_flag(req, "exclusive", FILE_EXCLUSIVE, &t->flags, e) < 0 ||
		query_number(req, "offset", 0, INT64_MAX, &offset, e) < 0 ||
		decode_mode(http_query(req, "mode"), "mode", &has_mode, &t->mode, e) < 0)
		return -1;
	if (has_mode)
		t->flags |= FILE_HAS_MODE;
	if (offset >= 0) {
		t->flags |= FILE_AT_OFFSET;
		t->offset = (uint64_t)offset;
	}
	bool in_place = t->flags & (FILE_APPEND | FILE_AT_OFFSET);
	if ((t->flags & FILE_ATOMIC) && in_place)
		return error_set_field(e, ERROR_INVALID_FIELD, "atomic",
			"\"atomic\" replaces the whole file: it cannot be together with \"append\" or \"offset\"");
	if ((t->flags & FILE_APPEND) && offset >= 0)
		return error_set_field(e, ERROR_INVALID_FIELD, "offset",
			"\"offset\" cannot be together with \"append\"");
	return 0;
}

static void handle_put(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", "parents", "append", "atomic",
		"exclusive", "offset", "mode", "owner", NULL};
	struct error e;
	struct files_actor place;
	struct file_target target = {0};
	struct file_request request = {.fixed = {.op = FILE_WRITE, .flags = FILE_WITH_NAMES}};
	if (files_query_place(req, known, &place, &target.path, &e) < 0 ||
		parse_target(req, &target, &e) < 0) {
		api_refuse(req, &e);
		return;
	}
	request.text[FILE_PATH] = target.path;
	struct answer *a = files_begin(req, &place, &request, FILES_ANSWER_ENTRY);
	op_put(a->op, &(struct op_item){OP_ITEM_FILE, .target = target});
	if (http_content_length(req) > 0)
		op_put(a->op, &(struct op_item){OP_ITEM_LENGTH,
				      .length = (uint64_t)http_content_length(req)});
	answer_run_with_body(a, &answer_body_file);
}

static void files_content_handle_delete(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", "recursive", "missingOk", NULL};
	struct error e;
	struct files_actor place;
	struct file_request request = {.fixed = {.op = FILE_REMOVE}};
	unsigned *flags = &request.fixed.flags;
	if (files_query_place(req, known, &place, &request.text[FILE_PATH], &e) < 0 ||
		files_query_flag(req, "recursive", FILE_RECURSIVE, flags, &e) < 0 ||
		files_query_flag(req, "missingOk", FILE_EXIST_OK, flags, &e) < 0) {
		api_refuse(req, &e);
		return;
	}
	answer_run(files_begin(req, &place, &request, FILES_ANSWER_NOTHING));
}

static const struct http_route content_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/files", files_content_handle_get, 0},
	{HTTP_PUT, "/v1/sandboxes/{id}/files", handle_put, FILES_UPLOAD_MAX, .streams_body = true},
	{HTTP_DELETE, "/v1/sandboxes/{id}/files", files_content_handle_delete, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/files/{path*}", files_content_handle_get, 0},
	{HTTP_PUT, "/v1/sandboxes/{id}/files/{path*}", handle_put, FILES_UPLOAD_MAX,
		.streams_body = true},
	{HTTP_DELETE, "/v1/sandboxes/{id}/files/{path*}", files_content_handle_delete, 0},
};

const struct route_table files_content_table = ROUTE_TABLE(content_routes);
