#include "dialect/e2b/rpc.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"

#define KEEPALIVE_DEFAULT_S 90
#define KEEPALIVE_MAX_S     3600
#define TIMEOUT_DIGITS_MAX  10

/* ---- unary ---- */

static int rpc_parse(const struct http_request *req, cJSON **ret, struct error *e)
{
	size_t len;
	const char *encoding = http_header(req, "content-encoding");
	const char *text = http_body(req, &len);
	if (!http_has_type(req, "application/json"))
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"unary calls are made with 'Content-Type: application/json'");
	if (encoding && strcasecmp(encoding, "identity") != 0)
		return error_set(
			e, ERROR_UNSUPPORTED_MEDIA_TYPE, "compressed messages are not supported");
	return envelope_parse(text, len, ret, e);
}

cJSON *rpc_request(struct http_request *req)
{
	struct error e;
	cJSON *message = NULL;
	if (rpc_parse(req, &message, &e) < 0)
		http_respond_error(req, &e);
	return message;
}

static void rpc_message_free(void *message)
{
	cJSON_Delete(message);
}

const cJSON *rpc_message(struct answer *a, struct error *e)
{
	cJSON *message = NULL;
	if (rpc_parse(a->req, &message, e) < 0)
		return NULL;
	scratch_own(&a->call.memory, message, rpc_message_free);
	return message;
}

int rpc_put_empty(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_DONE)
		buf_append_str(&a->out, "{}");
	return 0;
}

void rpc_encode_error(const struct error *e, struct http_error_answer *answer)
{
	struct json_writer w = {.out = &answer->body};
	answer->status = rpc_http_status(rpc_code_of(e->code));
	envelope_put_error(&w, e);
}

/* ---- streaming calls ---- */

bool rpc_is_stream(const struct http_request *req)
{
	return http_has_type(req, "application/connect+json");
}

/* Exactly one envelope, of the length it says. */
static int take_only_message(struct buf *in, cJSON **ret, struct error *e)
{
	int r = envelope_take(in, ret, e);
	if (r < 0 || (r > 0 && in->len == 0))
		return r;
	if (r > 0)
		cJSON_Delete(take_ptr(*ret));
	return error_set(e, ERROR_INVALID_REQUEST,
		"the body must be exactly one envelope, of the length it says");
}

static int rpc_stream_parse(const struct http_request *req, cJSON **ret, struct error *e)
{
	size_t len;
	autobuf in = {0};
	const char *body = http_body(req, &len);
	if (!rpc_is_stream(req))
		return error_set(e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"streaming calls are made with 'Content-Type: application/connect+json'");
	buf_append(&in, body, len);
	return take_only_message(&in, ret, e);
}

const cJSON *rpc_stream_message(struct answer *a, struct error *e)
{
	cJSON *message = NULL;
	if (rpc_stream_parse(a->req, &message, e) < 0)
		return NULL;
	scratch_own(&a->call.memory, message, rpc_message_free);
	return message;
}

enum answer_failure rpc_stream_fail(struct answer *a, struct error *e, const struct op_event *event)
{
	(void)event;
	if (!rpc_is_stream(a->req))
		return ANSWER_ERROR;
	envelope_put_end(&a->out, e);
	return ANSWER_PUT;
}

/* ---- what the headers ask for ---- */

static bool parse_digits(const char *text, size_t digits_max, int64_t *ret)
{
	size_t len = strlen(text);
	if (len == 0 || len > digits_max || strspn(text, "0123456789") != len)
		return false;
	*ret = strtoll(text, NULL, 10);
	return true;
}

int rpc_deadline(const struct http_request *req, int64_t *ms, struct error *e)
{
	const char *text = http_header(req, "connect-timeout-ms");
	*ms = 0;
	if (!text || parse_digits(text, TIMEOUT_DIGITS_MAX, ms))
		return 0;
	return error_set(
		e, ERROR_INVALID_REQUEST, "Connect-Timeout-Ms must be a number of milliseconds");
}

uint64_t rpc_keepalive_ms(const struct http_request *req)
{
	int64_t seconds;
	const char *text = http_header(req, "keepalive-ping-interval");
	if (!text || !parse_digits(text, 9, &seconds) || seconds == 0)
		seconds = KEEPALIVE_DEFAULT_S;
	if (seconds > KEEPALIVE_MAX_S)
		seconds = KEEPALIVE_MAX_S;
	return (uint64_t)seconds * 1000;
}
