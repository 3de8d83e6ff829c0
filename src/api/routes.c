/* The one list of routes, who may use them, and what handlers share. */
#include "api/routes.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static const struct {
	const struct api_table *table;
	bool open; /* to everyone, without a key */
} tables[API_MOUNTS] = {
	{&sandbox_table, false},
	{&sandbox_list_table, false},
	{&lifecycle_table, false},
	{&event_table, false},
	{&usage_table, false},
	{&checkpoint_table, false},
	{&diff_table, false},
	{&snapshot_table, false},
	{&bundle_table, false},
	{&volume_table, false},
	{&inventory_table, false},
	{&portable_table, false},
	{&exec_table, false},
	{&execution_table, false},
	{&processes_table, false},
	{&processes_control_table, false},
	{&processes_input_table, false},
	{&jobs_table, false},
	{&code_table, false},
	{&contexts_table, false},
	{&context_run_table, false},
	{&environment_table, false},
	{&files_content_table, false},
	{&files_query_table, false},
	{&files_change_table, false},
	{&files_write_table, false},
	{&files_tar_table, false},
	{&files_watch_table, false},
	{&template_table, false},
	{&build_table, false},
	{&import_table, false},
	{&metrics_table, false},
	{&health_table, true},
};

const struct http_route *api_route_at(size_t index)
{
	static const struct http_route end = {.pattern = NULL};
	for (size_t i = 0; i < API_MOUNTS; i++) {
		if (index < tables[i].table->count)
			return &tables[i].table->routes[index];
		index -= tables[i].table->count;
	}
	return &end;
}

static int admit(struct http_request *req, struct error *e)
{
	return auth_admit(((struct api *)http_ctx(req))->auth, req, e);
}

void api_mounts(struct api *api, struct http_mount out[API_MOUNTS])
{
	for (size_t i = 0; i < API_MOUNTS; i++)
		out[i] = (struct http_mount){tables[i].table->routes, tables[i].table->count,
			tables[i].open ? NULL : admit, api};
}

struct answer *api_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	a->call.ops = ((struct api *)http_ctx(req))->ops;
	a->call.api = "native";
	a->call.tenant = api_tenant(req);
	a->call.sandbox = http_param(req, "id");
	return a;
}

struct sandbox *api_sandbox(struct http_request *req)
{
	struct sandbox *s = sandbox_find(api_box(req), api_tenant(req), http_param(req, "id"));
	if (!s) {
		struct error e;
		error_set(&e, ERROR_NOT_FOUND, "there is no such sandbox");
		http_respond_error(req, &e);
	}
	return s;
}

cJSON *api_body(struct http_request *req)
{
	struct error e;
	size_t len;
	cJSON *tree = NULL;
	const char *text = http_body(req, &len);
	if (!http_has_type(req, "application/json"))
		error_set(&e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"the body must be JSON, with 'Content-Type: application/json'");
	else if (json_parse(text, len, &tree, &e) == 0 && !cJSON_IsObject(tree)) {
		cJSON_Delete(take_ptr(tree));
		error_set(&e, ERROR_INVALID_JSON, "the body must be a JSON object");
	}
	if (!tree)
		http_respond_error(req, &e);
	return tree;
}

int api_optional_body(
	struct http_request *req, const struct json_field *fields, size_t count, void *ret)
{
	struct error e;
	size_t len;
	http_body(req, &len);
	if (len == 0)
		return 0;
	cJSON *tree = api_body(req);
	if (!tree)
		return -1;
	int r = json_decode(tree, fields, count, "", ret, &e);
	cJSON_Delete(tree);
	if (r < 0)
		http_respond_error(req, &e);
	return r;
}

int api_query_bool(struct http_request *req, const char *name, bool *ret, struct error *e)
{
	const char *text = http_query(req, name);
	if (!text)
		return 0;
	*ret = strcmp(text, "true") == 0;
	if (!*ret && strcmp(text, "false") != 0)
		return error_set_field(
			e, ERROR_INVALID_FIELD, name, "\"%s\" must be 'true' or 'false'", name);
	return 0;
}

void api_respond_json(struct http_request *req, int status, struct buf *body)
{
	http_respond(req, status, "application/json", body);
}
