/* …/fs/tar: a directory down as an archive by GET, an archive up into a directory by PUT. */
#include <string.h>

#include "answer/content.h"
#include "api/files.h"
#include "op/archive.h"

/* ---- down ---- */

static int pack_query_coding(
	const struct http_request *req, enum archive_coding *ret, struct error *e)
{
	static const char *const names[] = {
		[ARCHIVE_PLAIN] = "none", [ARCHIVE_GZIP] = "gzip", [ARCHIVE_ZSTD] = "zstd"};
	const char *text = http_query(req, "compression");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(text ? text : "none", names[i]) == 0) {
			*ret = (enum archive_coding)i;
			return 0;
		}
	}
	return error_set_field(e, ERROR_INVALID_FIELD, "compression",
		"\"compression\" must be \"none\", \"gzip\" or \"zstd\"");
}

static int pack_decode(struct http_request *req, struct op_pack *ret, struct error *e)
{
	static const char *const known[] = {"path", "user", "cwd", "compression", NULL};
	struct files_actor place;
	if (files_query_place(req, known, &place, &ret->path, e) < 0)
		return -1;
	ret->user = place.user;
	ret->cwd = place.cwd;
	return pack_query_coding(req, &ret->coding, e);
}

static void handle_pack(struct http_request *req)
{
	static const struct answer_form form = {.put = content_put_bytes};
	static const char *const types[] = {[ARCHIVE_PLAIN] = "application/x-tar",
		[ARCHIVE_GZIP] = "application/gzip",
		[ARCHIVE_ZSTD] = "application/zstd"};
	struct error e;
	struct op_pack pack = {0};
	struct answer *a = api_answer(req, &form);
	if (pack_decode(req, &pack, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->type = types[pack.coding];
	a->op = op_pack(&a->call, &pack);
	answer_run(a);
}

/* ---- up ---- */

static int unpack_decode(struct http_request *req, struct op_unpack *ret, struct error *e)
{
	static const char *const known[] = {"path", "user", "cwd", "owners", "parents", NULL};
	struct files_actor place;
	if (files_query_place(req, known, &place, &ret->path, e) < 0)
		return -1;
	ret->user = place.user;
	ret->cwd = place.cwd;
	if (files_query_flag(req, "owners", FILE_OWNERS, &ret->flags, e) < 0)
		return -1;
	return files_query_flag(req, "parents", FILE_PARENTS, &ret->flags, e);
}

static int files_tar_unpack_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w = {.out = &a->out};
	(void)e;
	if (event->kind != OP_DONE)
		return 0;
	json_begin_object(&w);
	json_put_int(&w, "count", (int64_t)event->result.count);
	json_end_object(&w);
	return 0;
}

static void handle_unpack(struct http_request *req)
{
	static const struct answer_form form = {
		.type = "application/json", .pace = ANSWER_WHOLE, .put = files_tar_unpack_put};
	struct error e;
	struct op_unpack unpack = {.flags = FILE_PARENTS};
	struct answer *a = api_answer(req, &form);
	if (unpack_decode(req, &unpack, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_unpack(&a->call, &unpack);
	answer_run_with_body(a, &answer_body_bytes);
}

static const struct http_route tar_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/fs/tar", handle_pack, 0},
	{HTTP_PUT, "/v1/sandboxes/{id}/fs/tar", handle_unpack, FILES_UPLOAD_MAX,
		.streams_body = true},
};

const struct route_table files_tar_table = ROUTE_TABLE(tar_routes);
