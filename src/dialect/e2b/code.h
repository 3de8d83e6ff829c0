/* The code interpreter, which E2B's SDK reaches at port 49999 of a sandbox: what its files share.
 */
#pragma once

#include "dialect/e2b/envd.h"
#include "op/code.h"

/* As whom interpreters run: at E2B they are started by the system, and may do everything. */
#define E2B_CODE_USER "root"

extern const struct route_table e2b_code_table, e2b_code_run_table;

int code_admit(struct http_request *req, struct error *e);
/* Text, not JSON: the SDK shows it as it is. */
void code_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer);
