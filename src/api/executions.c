/* /v1/executions: what became of commands, also when their sandboxes are gone. */
#include <string.h>

#include "api/decode.h"
#include "api/lookup.h"
#include "api/output.h"
#include "api/processes.h"
#include "api/result.h"
#include "op/exec.h"

/* ---- one ---- */

static void api_executions_handle_get_execution(struct http_request *req)
{
	struct error e;
	struct op_attach attach = {
		.process = process_named(req), .wants = OP_EXEC_RESULT, .piece = RESULT_PIECE};
	struct answer *a = process_answer(req, &result_form);
	if (decode_encoding(http_query(req, "encoding"), "encoding",
		    &((struct result *)a->own)->base64, &e) < 0 ||
		api_parse_wait(req, &attach.wait_ms, &e) < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_attach(&a->call, &attach);
	answer_run(a);
}

/* ---- many ---- */

static int parse_kind(const char *text, unsigned *kinds, struct error *e)
{
	*kinds = 0;
	for (int i = 0; text && i < EXECUTION_KIND_COUNT; i++)
		if (strcmp(text, execution_kind_name((enum execution_kind)i)) == 0)
			*kinds = 1u << i;
	if (text && *kinds == 0)
		return error_set_field(e, ERROR_INVALID_FIELD, "kind",
			"\"kind\" must be \"command\", \"process\" or \"job\"");
	return 0;
}

static void api_executions_handle_list_executions(struct http_request *req)
{
	static const struct answer_records records = PROCESS_LIST("executions");
	static const struct answer_form form = {ANSWER_PACED_LIST(&records)};
	struct error e;
	struct api_page page;
	unsigned kinds;
	struct answer *a = process_list_answer(req, &form, http_query(req, "sandbox"));
	if (parse_kind(http_query(req, "kind"), &kinds, &e) < 0 ||
		api_parse_page(req, &page, &e) < 0) {
		a->call.sandbox = NULL; /* it is a filter */
		answer_refuse(a, &e);
		return;
	}
	a->op = op_process_list(&a->call, &(struct op_process_list){.ended = true,
						  .kinds = kinds,
						  .before_ms = page.before_ms,
						  .before_id = page.before_id,
						  .limit = (unsigned)page.limit});
	answer_run(a);
}

static const struct http_route execution_routes[] = {
	{HTTP_GET, "/v1/executions", api_executions_handle_list_executions, 0},
	{HTTP_GET, "/v1/executions/{id}", api_executions_handle_get_execution, 0},
	{HTTP_GET, "/v1/executions/{id}/output", output_handle, 0},
};

const struct route_table execution_table = ROUTE_TABLE(execution_routes);
