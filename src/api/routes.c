/* The list of all routes with their scopes, and the helpers that handlers share. */
#include "api/routes.h"

#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

static const struct route_table *const closed_tables[] = {
	&sandbox_table,
	&sandbox_list_table,
	&lifecycle_table,
	&network_table,
	&destination_table,
	&event_table,
	&usage_table,
	&checkpoint_table,
	&port_table,
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
	&key_table,
	&secret_table,
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
	answer_name_sandbox(a, http_param(req, "id"));
	return a;
}

void api_refuse(struct http_request *req, const struct error *e)
{
	static const struct answer_form form = {.pace = ANSWER_WHOLE};
	answer_refuse(api_answer(req, &form), e);
}

cJSON *api_body(struct http_request *req)
{
	struct error e;
	cJSON *tree = NULL;
	if (!http_has_type(req, "application/json"))
		error_set(&e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"the body must be JSON, with 'Content-Type: application/json'");
	else if (http_json(req, &tree, &e) == 0 && !cJSON_IsObject(tree)) {
		cJSON_Delete(take_ptr(tree));
		error_set(&e, ERROR_INVALID_JSON, "the body must be a JSON object");
	}
	if (!tree)
		api_refuse(req, &e);
	return tree;
}

void api_respond_json(struct http_request *req, int status, struct buf *body)
{
	http_respond(req, status, "application/json", body);
}
