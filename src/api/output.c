/*
 * GET …/output: what a process has written, from a byte on, and then live until it ends.
 *
 *     ?stream=stdout|stderr   only this one
 *     ?offset=N               from this byte; -N: the last N bytes
 *     ?stderrOffset=N         the same for stderr alone, when both are read
 *     ?follow=false           only what is there now
 *
 * Events as of an exec, by Accept; or with "Accept: application/octet-stream" the bytes of one
 * stream. Bytes that were not kept are an event; among bytes they end the answer as one that was
 * cut short. A client that goes away leaves the process alone.
 */
#include "api/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/decode.h"
#include "api/processes.h"
#include "api/stream.h"
#include "op/exec.h"

#define CHUNK (128u * 1024)

/* ---- what is asked for ---- */

struct output_query {
	struct op_attach attach;
	bool one; /* a stream was named */
	bool base64;
};

static int parse_stream(const char *text, struct output_query *ret, struct error *e)
{
	if (!text)
		return 0;
	bool out = strcmp(text, "stdout") == 0, err = strcmp(text, "stderr") == 0;
	if (!out && !err)
		return error_set_field(e, ERROR_INVALID_FIELD, "stream",
			"\"stream\" must be \"stdout\" or \"stderr\"");
	ret->one = true;
	ret->attach.ignores[0] = !out;
	ret->attach.ignores[1] = !err;
	return 0;
}

static int api_output_parse_offset(const char *text, const char *field, unsigned stream,
	struct op_attach *ret, struct error *e)
{
	char *end;
	bool from_end = text[0] == '-';
	unsigned long long number = strtoull(text + from_end, &end, 10);
	if (text[from_end] < '0' || text[from_end] > '9' || *end || number > INT64_MAX)
		return error_set_field(
			e, ERROR_INVALID_FIELD, field, "\"%s\" must be a number of bytes", field);
	ret->position[stream] = number;
	ret->from_end[stream] = from_end;
	return 0;
}

/*
 * An offset behind the end of what an ended process wrote is refused, if it was given for that
 * stream. One that runs may still write so much: what a client has seen may come to us a moment
 * later.
 */
static int parse_offsets(const struct http_request *req, struct output_query *ret, struct error *e)
{
	struct op_attach *attach = &ret->attach;
	const char *both = http_query(req, "offset"), *err = http_query(req, "stderrOffset");
	for (unsigned i = 0; both && i < EXECUTION_STREAMS; i++)
		if (api_output_parse_offset(both, "offset", i, attach, e) < 0)
			return -1;
	if (err && api_output_parse_offset(err, "stderrOffset", 1, attach, e) < 0)
		return -1;
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
		if (ret->one ? !attach->ignores[i] : err != NULL)
			attach->checked[i] = i && err ? "stderrOffset" : "offset";
	return 0;
}

static int parse_follow(const char *text, bool *ret, struct error *e)
{
	*ret = !text || strcmp(text, "true") == 0;
	if (*ret || strcmp(text, "false") == 0)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "follow", "\"follow\" must be \"true\" or \"false\"");
}

static int output_parse_query(
	const struct http_request *req, struct output_query *ret, struct error *e)
{
	bool follow = true;
	ret->attach.process = process_named(req);
	if (parse_stream(http_query(req, "stream"), ret, e) < 0 ||
		parse_follow(http_query(req, "follow"), &follow, e) < 0 ||
		decode_encoding(http_query(req, "encoding"), "encoding", &ret->base64, e) < 0)
		return -1;
	ret->attach.stops = !follow;
	return parse_offsets(req, ret, e);
}

/* ---- what is given ---- */

static void bytes_put_lengths(struct answer *a, const struct execution_view *view)
{
	char text[24];
	unsigned stream = *(unsigned *)a->own;
	if (view->status <= EXECUTION_RUNNING)
		return;
	snprintf(text, sizeof text, "%llu", (unsigned long long)view->length[stream]);
	http_add_header(a->req, "X-Output-Length", text);
	snprintf(text, sizeof text, "%llu", (unsigned long long)view->stored[stream]);
	http_add_header(a->req, "X-Output-Kept", text);
}

/* Bytes that are missing cut it short. */
static int bytes_put(struct answer *a, const struct op_event *event, struct error *e)
{
	if (event->kind == OP_STARTED)
		bytes_put_lengths(a, event->execution);
	if (event->kind != OP_OUTPUT)
		return 0;
	if (event->output.missing > 0)
		return error_set(e, ERROR_INTERNAL, "bytes are missing here");
	answer_put_bytes(a, event->output.bytes);
	return 0;
}

static void bytes_head(struct answer *a)
{
	http_add_header(a->req, "Cache-Control", "no-store");
}

static const struct answer_form bytes_form = {.type = "application/octet-stream",
	.pace = ANSWER_LIVE,
	.own_size = sizeof(unsigned), /* which stream */
	.put = bytes_put,
	.fail = process_fail,
	.head = bytes_head};

/* Events, unless bytes are asked for, or one stream without a word about events. */
static enum stream_format format_of(const struct http_request *req, const struct output_query *q)
{
	const char *accept = http_header(req, "accept");
	enum stream_format format = stream_format_of(accept);
	bool bytes = accept && strstr(accept, "application/octet-stream");
	if (format != STREAM_NONE || bytes || q->one)
		return format;
	return STREAM_NDJSON;
}

static struct answer *output_answer(struct http_request *req, struct output_query *query)
{
	enum stream_format format = format_of(req, query);
	bool bytes = format == STREAM_NONE;
	struct answer *a = process_answer(req, bytes ? &bytes_form : &stream_form);
	if (bytes) {
		unsigned raw = query->attach.ignores[0] ? 1 : 0;
		query->attach.piece = CHUNK;
		query->attach.ignores[!raw] = true;
		*(unsigned *)a->own = raw;
	} else {
		((struct stream *)a->own)->base64 = query->base64;
		stream_begin(a, format);
	}
	return a;
}

void output_handle(struct http_request *req)
{
	struct error e;
	struct output_query query = {0};
	bool socket = answer_wants_socket(req);
	int r = output_parse_query(req, &query, &e);
	struct answer *a = socket ? output_socket_answer(req) : output_answer(req, &query);
	if (r < 0) {
		answer_refuse(a, &e);
		return;
	}
	a->op = op_attach(&a->call, &query.attach);
	if (socket)
		answer_run_socket(a, &output_socket);
	else
		answer_run(a);
}
