/* The code interpreter, which E2B's SDK reaches at port 49999 of a sandbox: what its files share.
 */
#pragma once

#include "box/code/code.h"
#include "dialect/e2b/envd.h"

extern const struct route_table e2b_code_table, e2b_code_run_table;

int code_admit(struct http_request *req, struct error *e);
/* Text, not JSON: the SDK shows it as it is. */
void code_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer);
/* "Context x not found" */
void code_respond_no_context(struct http_request *req, const char *id);
