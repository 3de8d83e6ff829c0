/*
 * PUT /volumecontent/{volume}/file: the body becomes a file. Bytes go on as they are taken inside;
 * nothing is kept here but a window.
 */
#include "dialect/e2b/volumes.h"
#include "op/files.h"

#define FILE_MODE 0644

static int begin_write(struct http_request *req, const char *path, struct error *e)
{
	struct volume_make make;
	if (!http_has_type(req, "application/octet-stream"))
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"a file comes as application/octet-stream");
	if (e2b_volume_make(req, FILE_MODE, &make, e) < 0)
		return -1;
	struct answer *a = volume_entry_answer(req, 201, path);
	a->op = op_files(&a->call,
		&(struct op_files){.request = {.fixed = {.op = FILE_WRITE, .limit = UINT64_MAX},
					   .text = {[FILE_CWD] = "/", [FILE_PATH] = path}}});
	op_put(a->op, &(struct op_item){OP_ITEM_FILE,
			      .target = {.path = path,
				      .flags = FILE_HAS_MODE |
					       (make.force ? FILE_PARENTS : FILE_EXCLUSIVE),
				      .mode = make.mode,
				      .owner = make.owner}});
	answer_run_with_body(a, &answer_body_file);
	return 0;
}

static void volume_write_handle_write(struct http_request *req)
{
	e2b_volume_serve(req, begin_write);
}

static const struct http_route routes[] = {
	{HTTP_PUT, "/volumecontent/{volume}/file", volume_write_handle_write, UINT64_MAX, true},
};

const struct route_table e2b_volume_write_table = ROUTE_TABLE(routes);
