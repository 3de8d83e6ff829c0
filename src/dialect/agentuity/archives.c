/*
 * GET /fs/download/{id}: a directory as a tar.gz or a zip; POST /fs/upload/{id}: one unpacked into
 * a directory. Without ?format= an upload tells what it is by its content type, or is a tar
 * archive, compressed or not.
 */
#include "dialect/agentuity/archives.h"

#include <string.h>

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

static void handle_download(struct http_request *req)
{
	static const struct archive_form forms[] = {
		[FORMAT_TAR] = {"application/gzip", true, CODEC_GZIP},
		[FORMAT_ZIP] = {"application/zip", true, CODEC_ZIP},
	};
	struct error e;
	int format = FORMAT_TAR;
	struct sandbox *s = agentuity_sandbox_or_404(req);
	if (!s)
		return;
	int r = agentuity_query_word(req, "format", formats, &format, &e);
	const struct archive_job job = {.sandbox = s,
		.request = {.fixed = {.op = FILE_PACK,
				    .flags = format == FORMAT_ZIP ? FILE_ZIP : 0},
			.text[FILE_PATH] = query_path(req)},
		.loop = server_of(req)->loop};
	if (r < 0 || handler_send_archive(req, &job, &forms[format], &e) < 0)
		http_respond_error(req, &e);
}

static void unpack(struct http_request *req, struct sandbox *s, const char *path, bool is_zip,
	archive_taken_fn *taken)
{
	struct error e;
	const struct archive_job job = {.sandbox = s,
		.request = {.fixed = {.op = FILE_UNPACK,
				    .flags = FILE_PARENTS | (is_zip ? FILE_ZIP : 0)},
			.text[FILE_PATH] = path},
		.loop = server_of(req)->loop};
	if (handler_take_archive(req, &job, taken, &e) < 0)
		http_respond_error(req, &e);
}

void archive_unpack(
	struct http_request *req, struct sandbox *s, const char *path, archive_taken_fn *taken)
{
	unpack(req, s, path, false, taken);
}

static void unpacked(struct http_request *req, const struct file_result *result)
{
	(void)result;
	agentuity_respond_success(req);
}

static void handle_upload(struct http_request *req)
{
	struct error e;
	int format = FORMAT_TAR;
	const char *type = http_header(req, "content-type");
	struct sandbox *s = agentuity_sandbox_or_404(req);
	if (!s)
		return;
	if (agentuity_query_word(req, "format", formats, &format, &e) < 0) {
		http_respond_error(req, &e);
		return;
	}
	bool is_zip = format == FORMAT_ZIP ||
		      (!http_query(req, "format") && type && strcmp(type, "application/zip") == 0);
	unpack(req, s, query_path(req), is_zip, unpacked);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/download/{id}", handle_download, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/upload/{id}", handle_upload, UPLOAD_MAX, .streams_body = true},
};

const struct route_table agentuity_archive_table = ROUTE_TABLE(routes);
