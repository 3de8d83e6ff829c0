/* …/fs/tar: a directory down as an archive by GET, an archive up into a directory by PUT. */
#include <string.h>

#include "api/files.h"
#include "handler/archives.h"

static int query_form(const struct http_request *req, struct archive_form *form, struct error *e)
{
	static const struct {
		const char *name;
		struct archive_form form;
	} forms[] = {
		{"none", {.type = "application/x-tar"}},
		{"gzip", {"application/gzip", true, CODEC_GZIP}},
		{"zstd", {"application/zstd", true, CODEC_ZSTD}},
	};
	const char *text = http_query(req, "compression");
	for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
		if (strcmp(text ? text : "none", forms[i].name) == 0) {
			*form = forms[i].form;
			return 0;
		}
	}
	return error_set_field(e, ERROR_INVALID_FIELD, "compression",
		"\"compression\" must be \"none\", \"gzip\" or \"zstd\"");
}

/* What both ways are asked for: where, and with whose rights. */
static int query_job(struct http_request *req, const char *const *known, struct archive_job *job,
	struct error *e)
{
	struct files_place place;
	if (files_check_query(req, known, e) < 0 || files_query_place(req, &place, e) < 0 ||
		files_query_path(req, &job->request.text[FILE_PATH], e) < 0)
		return -1;
	job->sandbox = sandbox_find(server_of(req)->box, tenant_of(req), http_param(req, "id"));
	if (!job->sandbox)
		return error_set(e, ERROR_NOT_FOUND, "there is no such sandbox");
	job->user = place.user;
	job->request.text[FILE_CWD] = place.cwd;
	job->loop = server_of(req)->loop;
	return 0;
}

static void handle_pack(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", "compression", NULL};
	struct error e;
	struct archive_form form;
	struct archive_job job = {.request.fixed.op = FILE_PACK};
	if (query_job(req, known, &job, &e) < 0 || query_form(req, &form, &e) < 0 ||
		handler_send_archive(req, &job, &form, &e) < 0)
		http_respond_error(req, &e);
}

static void respond_count(struct http_request *req, const struct file_result *result)
{
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	json_begin_object(&w);
	json_put_int(&w, "count", (int64_t)result->count);
	json_end_object(&w);
	api_respond_json(req, 200, &body);
}

static void handle_unpack(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", "owners", "parents", NULL};
	struct error e;
	struct archive_job job = {.request.fixed = {.op = FILE_UNPACK, .flags = FILE_PARENTS}};
	unsigned *flags = &job.request.fixed.flags;
	if (query_job(req, known, &job, &e) < 0 ||
		files_query_flag(req, "owners", FILE_OWNERS, flags, &e) < 0 ||
		files_query_flag(req, "parents", FILE_PARENTS, flags, &e) < 0 ||
		handler_take_archive(req, &job, respond_count, &e) < 0)
		http_respond_error(req, &e);
}

static const struct http_route tar_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/fs/tar", handle_pack, 0},
	{HTTP_PUT, "/v1/sandboxes/{id}/fs/tar", handle_unpack, FILES_UPLOAD_MAX,
		.streams_body = true},
};

const struct route_table files_tar_table = ROUTE_TABLE(tar_routes);
