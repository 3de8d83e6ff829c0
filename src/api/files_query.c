/* GET …/fs/stat, exists, list and metadata: questions that change nothing. */
#include "api/files.h"

static void files_query_handle_stat(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", "follow", NULL};
	struct error e;
	struct files_actor place;
	struct file_request request = {.fixed = {.op = FILE_STAT, .flags = FILE_WITH_NAMES}};
	if (files_query_place(req, known, &place, &request.text[FILE_PATH], &e) < 0 ||
		files_query_flag(req, "follow", FILE_FOLLOW, &request.fixed.flags, &e) < 0)
		api_refuse(req, &e);
	else
		answer_run(files_begin(req, &place, &request, FILES_ANSWER_ENTRY));
}

static void handle_exists(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", NULL};
	struct error e;
	struct files_actor place;
	struct file_request request = {.fixed = {.op = FILE_STAT, .flags = FILE_FOLLOW}};
	if (files_query_place(req, known, &place, &request.text[FILE_PATH], &e) < 0)
		api_refuse(req, &e);
	else
		answer_run(files_begin(req, &place, &request, FILES_ANSWER_EXISTS));
}

static void files_query_handle_list(struct http_request *req)
{
	static const char *const known[] = {
		"path", "user", "cwd", "depth", "limit", "cursor", "type", NULL};
	struct error e;
	struct files_actor place;
	int64_t depth = 1, limit = FILES_LIMIT_DEFAULT;
	struct file_request request = {.fixed = {.op = FILE_LIST, .flags = FILE_WITH_NAMES}};
	if (files_query_place(req, known, &place, &request.text[FILE_PATH], &e) < 0 ||
		query_number(req, "depth", 0, 10000, &depth, &e) < 0 ||
		query_number(req, "limit", 0, FILES_LIMIT_MAX, &limit, &e) < 0 ||
		files_parse_type(http_query(req, "type"), &request.fixed.mode, &e) < 0 ||
		files_parse_cursor(req, http_query(req, "cursor"), &request.text[FILE_EXTRA], &e) <
			0) {
		api_refuse(req, &e);
		return;
	}
	request.fixed.depth = (uint32_t)depth;
	request.fixed.limit = (uint64_t)limit;
	answer_run(files_begin(req, &place, &request, FILES_ANSWER_ENTRIES));
}

static void handle_metadata(struct http_request *req)
{
	static const char *const known[] = {"path", "user", "cwd", NULL};
	struct error e;
	struct files_actor place;
	struct file_request request = {.fixed = {.op = FILE_ATTRIBUTES}};
	if (files_query_place(req, known, &place, &request.text[FILE_PATH], &e) < 0) {
		api_refuse(req, &e);
		return;
	}
	struct answer *a = files_begin(req, &place, &request, FILES_ANSWER_METADATA);
	op_put(a->op, &(struct op_item){OP_ITEM_END});
	answer_run(a);
}

static const struct http_route query_routes[] = {
	{HTTP_GET, "/v1/sandboxes/{id}/fs/stat", files_query_handle_stat, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/fs/exists", handle_exists, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/fs/list", files_query_handle_list, 0},
	{HTTP_GET, "/v1/sandboxes/{id}/fs/metadata", handle_metadata, 0},
};

const struct route_table files_query_table = ROUTE_TABLE(query_routes);
