/* Declarations that the files of this room share. */
#pragma once

#include "api/api.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "model/execution.h"
#include "model/sandbox.h"
#include "answer/answer.h"
#include "answer/query.h"
#include "json/json.h"

#define BODY_LIMIT       (32u << 20)
#define SMALL_BODY_LIMIT (1u << 20)

/* The routes of each file; routes.c lists them all. */
extern const struct route_table sandbox_table, sandbox_list_table, lifecycle_table, network_table,
	destination_table, event_table, usage_table, key_table, secret_table, exec_table,
	execution_table, template_table, metrics_table, health_table;
extern const struct route_table build_table, import_table;
extern const struct route_table port_table, checkpoint_table, diff_table, snapshot_table,
	bundle_table, volume_table, inventory_table, portable_table;
extern const struct route_table processes_table, processes_control_table, processes_input_table,
	jobs_table, code_table, contexts_table, context_run_table, environment_table;
extern const struct route_table files_content_table, files_query_table, files_change_table,
	files_write_table, files_tar_table, files_watch_table;

/* For operations whose OP_DONE has a sandbox. */
extern const struct answer_form api_sandbox_form;
/* An answer whose operation is about the sandbox that the path names. */
struct answer *api_answer(struct http_request *req, const struct answer_form *form);
/* Tells *e, or that the sandbox of the path is not there: that comes first. */
void api_refuse(struct http_request *req, const struct error *e);
/* A JSON object from the body, to be deleted by the caller, or NULL after the request was answered.
 */
cJSON *api_body(struct http_request *req);
void api_respond_json(struct http_request *req, int status, struct buf *body);
