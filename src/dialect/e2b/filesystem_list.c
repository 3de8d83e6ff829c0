/* ListDir: what is in a directory, as deep as asked for. */
#include <stddef.h>

#include "dialect/e2b/files.h"
#include "dialect/e2b/filesystem.h"

struct list_message {
	const char *path;
	int64_t depth;
};

static const struct json_field list_fields[] = {
	{"path", FIELD_TEXT, offsetof(struct list_message, path), 0, 0, FILESYSTEM_PATH_MAX},
	{"depth", FIELD_INTEGER, offsetof(struct list_message, depth), 0, 0, UINT32_MAX},
};

static void begin_entries(struct json_writer *w)
{
	json_begin_object(w);
	json_key(w, "entries");
	json_begin_array(w);
}

static void end_entries(struct json_writer *w)
{
	json_end_array(w);
	json_end_object(w);
}

static const struct listing_form list_form = {
	begin_entries, entry_begin, end_entries, filesystem_explain};

static void handle_list_dir(struct http_request *req)
{
	struct error e = {0}, explained;
	struct list_message fields = {.path = ""};
	struct op_files request;
	cJSON *message = rpc_request(req);
	if (!message)
		return;
	if (json_decode_known(message, list_fields, ARRAY_LEN(list_fields), "", &fields, &e) < 0 ||
		filesystem_request(req, fields.path, FILE_LIST, ENTRY_FLAGS, &request, &e) < 0) {
		filesystem_explain("", &e, &explained);
		http_respond_error(req, &explained);
	} else {
		request.request.fixed.depth = fields.depth > 0 ? (uint32_t)fields.depth : 1;
		listing_run(envd_answer(req, &listing_answer), fields.path, &request, &list_form);
	}
	cJSON_Delete(message);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/filesystem.Filesystem/ListDir", handle_list_dir, RPC_BODY_LIMIT,
		.scope = HTTP_SCOPE_READ},
};

const struct route_table filesystem_list_table = ROUTE_TABLE(routes);
