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
#include <uv.h>

#include "answer/answer.h"
#include "dialect/e2b/envelope.h"
#include "http/http.h"
#include "json/json.h"

#define CONNECT_BODY_LIMIT ENVELOPE_MAX

/* ---- unary ---- */

/* The request's message, to be deleted by the caller, or NULL after the request was answered. */
cJSON *connect_request(struct http_request *req);
/* The same for an answer: it lives in the call's memory. NULL: *e is for answer_refuse. */
const cJSON *connect_message(struct answer *a, struct error *e);
/* Of a unary call that answers with nothing but that it was done; for answer_form.put. */
int connect_put_empty(struct answer *a, const struct op_event *event, struct error *e);
/* Takes the content. */
void connect_respond(struct http_request *req, struct buf *message);
void connect_respond_empty(struct http_request *req);
/* For a mount of unary calls; handlers use http_respond_error. */
void connect_encode_error(const struct error *e, struct http_error_answer *answer);

/* ---- streams ---- */

/* The one message of a streaming call, or NULL after the request was answered. */
cJSON *connect_stream_request(struct http_request *req);
/* The same for an answer: it lives in the call's memory. NULL: *e is for answer_refuse. */
const cJSON *connect_stream_message(struct answer *a, struct error *e);
/* For answer_form.fail: the error is in the last envelope, unless no envelopes were asked for. */
enum answer_failure connect_stream_fail(
	struct answer *a, struct error *e, const struct op_event *event);
/* An answer that is nothing but its end. */
void connect_stream_refuse(struct http_request *req, const struct error *e);

bool connect_is_stream(const struct http_request *req);
struct connect_stream;

enum connect_progress {
	CONNECT_MORE,   /* there will be more */
	CONNECT_DONE,   /* that was all */
	CONNECT_FAILED, /* that was all, and *e says why */
	CONNECT_RESET   /* what streamed is gone: the client shall see a broken connection */
};

/* Where a stream's messages come from. */
struct connect_source {
	/* Appends the messages there are, in envelopes; about 64 KiB at most. */
	enum connect_progress (*collect)(void *arg, struct buf *out, struct error *e);
	const char *keepalive; /* the message that says nothing */
	/*
	 * The stream is over, by its last message, its deadline, or because the client left: the
	 * last call. Only from the loop or inside connect_stream_wake.
	 */
	void (*closed)(void *arg, bool client_left);
	void *arg;
};

/*
 * Begins the answer. Deadline and keepalive are the request's: Connect-Timeout-Ms, after which the
 * stream ends with deadline_exceeded, and Keepalive-Ping-Interval, in seconds.
 */
struct connect_stream *connect_stream_begin(
	struct http_request *req, uv_loop_t *loop, const struct connect_source *source);
/* There may be more to collect. */
void connect_stream_wake(struct connect_stream *s);

/* How long a stream may be quiet. */
uint64_t connect_keepalive_ms(const struct http_request *req);
/* Connect-Timeout-Ms; 0: none. */
int connect_deadline(const struct http_request *req, int64_t *ms, struct error *e);
/* Milliseconds; 0: none. -1 after the request was refused, because it is no number. */
int64_t connect_timeout_ms(struct http_request *req);
