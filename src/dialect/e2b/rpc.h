/*
 * Connect's protocol in its JSON form, as E2B's envd speaks it.
 *
 * A unary call is a JSON object in, a JSON object out; its error is an HTTP status with
 * {"code","message"}. A streaming call is one envelope in, many out (envelope.h); its errors are in
 * the last one, behind a status 200: clients do not look into another status's body.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "answer/answer.h"
#include "dialect/e2b/envelope.h"
#include "http/http.h"
#include "json/json.h"

#define RPC_BODY_LIMIT ENVELOPE_MAX

/* ---- unary ---- */

/* The request's message, to be deleted by the caller, or NULL after the request was answered. */
cJSON *rpc_request(struct http_request *req);
/* The same for an answer: it lives in the call's memory. NULL: *e is for answer_refuse. */
const cJSON *rpc_message(struct answer *a, struct error *e);
/* Of a unary call that answers with nothing but that it was done; for answer_form.put. */
int rpc_put_empty(struct answer *a, const struct op_event *event, struct error *e);
/* For a mount of unary calls; handlers use http_respond_error. */
void rpc_encode_error(const struct error *e, struct http_error_answer *answer);

/* ---- streams ---- */

/*
 * The one message of a streaming call. It lives in the call's memory. NULL: *e is for
 * answer_refuse.
 */
const cJSON *rpc_stream_message(struct answer *a, struct error *e);
/* For answer_form.fail: the error is in the last envelope, unless no envelopes were asked for. */
enum answer_failure rpc_stream_fail(
	struct answer *a, struct error *e, const struct op_event *event);
bool rpc_is_stream(const struct http_request *req);

/* How long a stream may be quiet. */
uint64_t rpc_keepalive_ms(const struct http_request *req);
/* Connect-Timeout-Ms; 0: none. */
int rpc_deadline(const struct http_request *req, int64_t *ms, struct error *e);
