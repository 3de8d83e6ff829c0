/* The lists of routes, who may use them, and what handlers of the control plane share. */
#include "dialect/e2b/search.h"
#include "dialect/e2b/routes.h"

#include <string.h>

#include "dialect/e2b/code.h"
#include "dialect/e2b/aliases.h"
#include "dialect/e2b/envd.h"
#include "dialect/e2b/files.h"
#include "dialect/e2b/filesystem.h"
#include "dialect/e2b/process.h"
#include "dialect/e2b/templates.h"
#include "dialect/e2b/volumes.h"

static const struct route_table *const control_tables[] = {
	&e2b_sandbox_table,
	&e2b_list_table,
	&e2b_lifecycle_table,
	&e2b_network_table,
	&e2b_metrics_table,
	&e2b_logs_table,
	&e2b_snapshot_table,
	&e2b_template_table,
	&e2b_tag_table,
	&e2b_build_table,
	&e2b_build_files_table,
	&e2b_volume_table,
	&e2b_unsupported_table,
	NULL,
};

static const struct route_table *const content_tables[] = {
	&e2b_volume_content_table,
	&e2b_volume_write_table,
	NULL,
};

static const struct route_table *const envd_tables[] = {
	&envd_table,
	&envd_metrics_table,
	&files_download_table,
	&files_upload_table,
	NULL,
};

static const struct route_table *const rpc_tables[] = {
	&process_table,
	&process_control_table,
	&process_input_table,
	&process_stream_input_table,
	&filesystem_table,
	&filesystem_list_table,
	&filesystem_watch_table,
	&filesystem_watcher_table,
	NULL,
};

static const struct route_table *const upload_tables[] = {&e2b_upload_table, NULL};

/* A signed URL names no sandbox, so that its path has to do. */
static const struct route_table *const signed_tables[] = {
	&files_download_table,
	&files_upload_table,
	NULL,
};

static const struct route_table *const code_tables[] = {
	&e2b_code_table,
	&e2b_code_run_table,
	NULL,
};

static const char *const control_prefixes[] = {"", "/e2b", NULL};

static const struct dialect_area areas[] = {
	{.prefixes = control_prefixes,
		.tables = control_tables,
		.admit = dialect_admit_key,
		.encode_error = e2b_encode_error,
		.origin = DIALECT_KEYED_ORIGIN},
	{.prefixes = control_prefixes,
		.tables = content_tables,
		.admit = e2b_admit_volume,
		.encode_error = e2b_encode_error,
		.origin = DIALECT_ANY_ORIGIN},
	{.tables = upload_tables,
		.admit = e2b_admit_upload,
		.encode_error = e2b_encode_error,
		.origin = DIALECT_KEYED_ORIGIN},
	{.tables = envd_tables,
		.claim = E2B_CLAIM_ENVD,
		.admit = envd_admit,
		.encode_error = envd_encode_error,
		.origin = DIALECT_ANY_ORIGIN},
	{.tables = rpc_tables,
		.claim = E2B_CLAIM_ENVD,
		.admit = envd_admit,
		.encode_error = envd_encode_rpc_error,
		.origin = DIALECT_ANY_ORIGIN},
	{.tables = signed_tables,
		.admit = envd_admit,
		.encode_error = envd_encode_error,
		.origin = DIALECT_ANY_ORIGIN},
	{.tables = code_tables,
		.claim = E2B_CLAIM_CODE,
		.admit = code_admit,
		.encode_error = code_encode_error,
		.origin = DIALECT_ANY_ORIGIN},
};

static const struct destination_headers e2b_destination = {
	"e2b-sandbox-id", "e2b-sandbox-port", E2B_ENVD_PORT};

static const unsigned e2b_ports[] = {E2B_ENVD_PORT, E2B_CODE_PORT, 0};

const struct dialect e2b_dialect = {.name = "e2b",
	.ports = e2b_ports,
	.areas = areas,
	.area_count = ARRAY_LEN(areas),
	.aliases = e2b_aliases,
	.claims = e2b_claims,
	.destination = &e2b_destination,
	.own_size = sizeof(struct search_state)};

void e2b_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer)
{
	struct json_writer w = {.out = &answer->body};
	(void)req;
	json_begin_object(&w);
	json_put_int(&w, "code", answer->status);
	json_put_string(&w, "message", e->message);
	json_put_string(&w, "error_code", error_name(e->code));
	json_end_object(&w);
}

void e2b_respond_json(struct http_request *req, int status, struct buf *body)
{
	http_respond(req, status, E2B_JSON, body);
}

int e2b_parse_body(struct http_request *req, cJSON **ret, struct error *e)
{
	size_t len;
	http_body(req, &len);
	int r = len ? http_json(req, ret, e) : json_parse("{}", 2, ret, e);
	if (r < 0 || cJSON_IsObject(*ret))
		return r;
	cJSON_Delete(take_ptr(*ret));
	return error_set(e, ERROR_INVALID_JSON, "the body must be a JSON object");
}

cJSON *e2b_body(struct http_request *req)
{
	struct error e;
	cJSON *tree = NULL;
	if (e2b_parse_body(req, &tree, &e) == 0)
		return tree;
	http_respond_error(req, &e);
	return NULL;
}

struct answer *e2b_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = answer_new(req, form);
	const char *text = http_param(req, "id");
	char *id = http_alloc(req, ID_SIZE);
	answer_name_sandbox(a, id && destination_parse_id(text, id) ? id : text ? text : "");
	return a;
}

struct answer *e2b_usable_answer(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = e2b_answer(req, form);
	a->call.wants_usable = true;
	return a;
}

enum answer_failure e2b_fail(struct answer *a, struct error *e, const struct op_event *event)
{
	if (event && event->reason == OP_NO_SANDBOX)
		error_set(e, ERROR_NOT_FOUND, "sandbox \"%.64s\" not found",
			http_param(a->req, "id"));
	return ANSWER_ERROR;
}

const struct answer_form e2b_nothing_form = {.pace = ANSWER_WHOLE, .fail = e2b_fail};
