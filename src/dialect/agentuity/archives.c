/*
 * GET /fs/download/{id}: a directory as a tar.gz; POST /fs/upload/{id}: one unpacked into a
 * directory.
 *
 * Of the two formats that Agentuity has, tar.gz is what its own tools use; zip is refused.
 */
#include "dialect/agentuity/archives.h"

#define UPLOAD_MAX (UINT64_C(1) << 40)

static const char *const formats[] = {"tar.gz", "zip", NULL};

static int check_format(const struct http_request *req, struct error *e)
{
	int format;
	if (agentuity_query_word(req, "format", formats, &format, e) < 0)
		return -1;
	return format == 0 ? 0
			   : error_set_field(e, ERROR_NOT_IMPLEMENTED, "format",
				     "\"format\" can be \"tar.gz\" only");
}

static const char *query_path(const struct http_request *req)
{
	const char *path = http_query(req, "path");
	return path && path[0] ? path : ".";
}

static void handle_download(struct http_request *req)
{
	static const struct archive_form form = {"application/gzip", true, CODEC_GZIP};
	struct error e;
	struct sandbox *s = agentuity_sandbox_or_404(req);
	if (!s)
		return;
	const struct archive_job job = {.sandbox = s,
		.request = {.fixed.op = FILE_PACK, .text[FILE_PATH] = query_path(req)},
		.loop = agentuity_of(req)->loop};
	if (check_format(req, &e) < 0 || handler_send_archive(req, &job, &form, &e) < 0)
		http_respond_error(req, &e);
}

void archive_unpack(
	struct http_request *req, struct sandbox *s, const char *path, archive_taken_fn *taken)
{
	struct error e;
	const struct archive_job job = {.sandbox = s,
		.request = {.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS},
			.text[FILE_PATH] = path},
		.loop = agentuity_of(req)->loop};
	if (handler_take_archive(req, &job, taken, &e) < 0)
		http_respond_error(req, &e);
}

static void unpacked(struct http_request *req, const struct file_result *result)
{
	(void)result;
	agentuity_respond_success(req);
}

static void handle_upload(struct http_request *req)
{
	struct error e;
	struct sandbox *s = agentuity_sandbox_or_404(req);
	if (s && check_format(req, &e) < 0)
		http_respond_error(req, &e);
	else if (s)
		archive_unpack(req, s, query_path(req), unpacked);
}

static const struct http_route routes[] = {
	{HTTP_GET, "/download/{id}", handle_download, AGENTUITY_BODY_LIMIT},
	{HTTP_POST, "/upload/{id}", handle_upload, UPLOAD_MAX, .streams_body = true},
};

const struct agentuity_table agentuity_archive_table = AGENTUITY_TABLE(AGENTUITY_FILES, routes);
