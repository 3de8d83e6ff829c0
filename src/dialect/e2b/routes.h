/* What the files of this dialect share. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/id.h"
#include "base/scratch.h"
#include "model/sandbox.h"
#include "dialect/e2b/e2b.h"
#include "answer/answer.h"
#include "answer/query.h"
#include "json/json.h"

#define E2B_BODY_LIMIT   (4u << 20)
#define E2B_ENVD_VERSION "0.6.13" /* what SDKs look at to know what they may ask for */

/* The routes of each file; routes.c lists them all. */
extern const struct route_table e2b_sandbox_table, e2b_list_table, e2b_lifecycle_table,
	e2b_network_table, e2b_metrics_table, e2b_logs_table, e2b_unsupported_table;

/* {"code":<status>,"message"}: SDKs look at the number, not at the status. */
void e2b_encode_error(
	struct http_request *req, const struct error *e, struct http_error_answer *answer);
#define E2B_JSON "application/json; charset=utf-8"
/* Takes the content. */
void e2b_respond_json(struct http_request *req, int status, struct buf *body);
/* The body's object, {} when there is none. */
int e2b_parse_body(struct http_request *req, cJSON **ret, struct error *e);
/* The same; NULL after the request was answered. */
cJSON *e2b_body(struct http_request *req);
/* An answer whose operation is about the sandbox that the path names. */
struct answer *e2b_answer(struct http_request *req, const struct answer_form *form);
/* The same; one that has failed or is being deleted counts as missing. */
struct answer *e2b_usable_answer(struct http_request *req, const struct answer_form *form);
/* A status alone. */
extern const struct answer_form e2b_nothing_form;
/* For answer_form.fail: names the sandbox that is not there. */
enum answer_failure e2b_fail(struct answer *a, struct error *e, const struct op_event *event);
