/*
 * envd, as each sandbox has it: who may call, for which sandbox, and as whom inside.
 */
#pragma once

#include "dialect/e2b/access.h"
#include "dialect/e2b/routes.h"
#include "answer/answer.h"

extern const struct route_table envd_table, envd_metrics_table;

enum e2b_claim {
	E2B_CLAIM_ENVD = 1,
	E2B_CLAIM_CODE = 2
};
/* Which requests are for a sandbox's own host, and for which port of it. */
unsigned e2b_claims(const struct http_request *req);
int envd_admit(struct http_request *req, struct error *e);
void envd_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer);
void envd_encode_rpc_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer);

/* An answer whose operation is about the sandbox that admission found. */
struct answer *envd_answer(struct http_request *req, const struct answer_form *form);
/*
 * The user inside that the request is for, from `Authorization: Basic base64("user:")`; NULL: the
 * sandbox's own. The text is the request's.
 */
int envd_user(struct http_request *req, const char **ret, struct error *e);
/*
 * A path by envd's rules: "~" and "~/x" are the user's home, and what is not absolute begins there.
 * NULL and *e for other users' homes.
 */
const char *envd_path(const char *path, struct error *e);
