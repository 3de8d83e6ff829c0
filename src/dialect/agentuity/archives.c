/*
 * GET /fs/download/{id}: a directory as a tar.gz or a zip; POST /fs/upload/{id}: one unpacked into
 * a directory. Without ?format= an upload tells what it is by its content type, or is a tar
 * archive, compressed or not.
 */
#include "dialect/agentuity/archives.h"

#include <string.h>

#include "answer/content.h"
#include "op/archive.h"

#define UPLOAD_MAX (UINT64_C(1) << 40)

enum format {
	FORMAT_TAR,
	FORMAT_ZIP
};

static const char *const formats[] = {"tar.gz", "zip", NULL};

static const char *query_path(const struct http_request *req)
{
	const char *path = http_query(req, "path");
	return path && path[0] ? path : ".";
}

static void archives_handle_download(struct http_request *req)
{
	static const struct answer_form form = {
		.put = content_put_bytes, .fail = agentuity_fail_404};
	struct error e;
	int format = FORMAT_TAR;
	struct answer *a = agentuity_answer(req, &form);
	if (agentuity_query_word(req, "format", formats, &format, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->type = format == FORMAT_ZIP ? "application/zip" : "application/gzip";
	a->op = op_pack(
		&a->call, &(struct op_pack){.path = query_path(req),
				  .coding = format == FORMAT_ZIP ? ARCHIVE_ZIP : ARCHIVE_GZIP});
	answer_run(a);
}

static void archive_take(struct answer *a, const char *path, bool is_zip)
{
	const struct op_unpack unpack = {
		.path = path, .flags = FILE_PARENTS | (is_zip ? FILE_ZIP : 0)};
	a->op = op_unpack(&a->call, &unpack);
	answer_run_with_body(a, &answer_body_bytes);
}

void archive_unpack(struct answer *a, const char *path)
{
	archive_take(a, path, false);
}

static void archives_handle_upload(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.put = agentuity_put_success,
		.fail = agentuity_fail_404};
	struct error e;
	int format = FORMAT_TAR;
	const char *type = http_header(req, "content-type");
	struct answer *a = agentuity_answer(req, &form);
	if (agentuity_query_word(req, "format", formats, &format, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	bool is_zip = format == FORMAT_ZIP ||
		      (!http_query(req, "format") && type && strcmp(type, "application/zip") == 0);
	archive_take(a, query_path(req), is_zip);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/download/{id}", archives_handle_download, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/upload/{id}", archives_handle_upload, UPLOAD_MAX, .streams_body = true},
};

const struct route_table agentuity_archive_table = ROUTE_TABLE(routes);
