/* The one list of routes, who may use them, and what handlers share. */
#include "api/routes.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static const struct route_table *const closed_tables[] = {
	&sandbox_table,
	&sandbox_list_table,
	&lifecycle_table,
	&event_table,
	&usage_table,
	&checkpoint_table,
	&diff_table,
	&snapshot_table,
	&bundle_table,
	&volume_table,
	&inventory_table,
	&portable_table,
	&exec_table,
	&execution_table,
	&processes_table,
	&processes_control_table,
	&processes_input_table,
	&jobs_table,
	&code_table,
	&contexts_table,
	&context_run_table,
	&environment_table,
	&files_content_table,
	&files_query_table,
	&files_change_table,
	&files_write_table,
	&files_tar_table,
	&files_watch_table,
	&template_table,
	&build_table,
	&import_table,
	&metrics_table,
	NULL,
};

static const struct route_table *const open_tables[] = {&health_table, NULL};

static const struct dialect_area areas[] = {
	{.tables = closed_tables, .admit = dialect_admit_key},
	{.tables = open_tables},
};

const struct dialect api_dialect = {
	.name = "native", .areas = areas, .area_count = ARRAY_LEN(areas)};

struct answer *api_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	a->call.sandbox = http_param(req, "id");
	return a;
}

struct sandbox *api_sandbox(struct http_request *req)
{
	struct sandbox *s =
		sandbox_find(server_of(req)->box, tenant_of(req), http_param(req, "id"));
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

void api_respond_json(struct http_request *req, int status, struct buf *body)
{
	http_respond(req, status, "application/json", body);
}
