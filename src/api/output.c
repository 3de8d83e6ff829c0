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
#include <strings.h>

#include "api/decode.h"
#include "api/lookup.h"
#include "api/stream.h"
#include "op/exec.h"

#define CHUNK (128u * 1024)

/* ---- what is asked for ---- */

static int parse_stream(const char *text, struct output_query *ret, struct error *e)
{
	if (!text)
		return 0;
	bool out = strcmp(text, "stdout") == 0, err = strcmp(text, "stderr") == 0;
	if (!out && !err)
		return error_set_field(e, ERROR_INVALID_FIELD, "stream",
			"\"stream\" must be \"stdout\" or \"stderr\"");
	ret->one = true;
	ret->ignores[0] = !out;
	ret->ignores[1] = !err;
	return 0;
}

static int parse_offset(const char *text, const char *field, const struct execution_view *view,
	unsigned stream, uint64_t *ret, struct error *e)
{
	char *end;
	bool from_end = text[0] == '-';
	unsigned long long number = strtoull(text + from_end, &end, 10);
	uint64_t length = view->length[stream];
	if (text[from_end] < '0' || text[from_end] > '9' || *end || number > INT64_MAX)
		return error_set_field(
			e, ERROR_INVALID_FIELD, field, "\"%s\" must be a number of bytes", field);
	*ret = number;
	if (from_end)
		*ret = number < length ? length - number : 0;
	return 0;
}

/* One that runs may still write so much: what a client has seen may come to us a moment later. */
static int check_offset(const struct execution *x, const struct execution_view *view,
	const struct output_query *q, struct error *e)
{
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		bool named = q->one ? !q->ignores[i] : q->own_stderr;
		if (execution_has_ended(x) && named && q->position[i] > view->length[i])
			return error_set_field(e, ERROR_INVALID_FIELD,
				i && q->own_stderr ? "stderrOffset" : "offset",
				"the output ends at byte %llu",
				(unsigned long long)view->length[i]);
	}
	return 0;
}

static int parse_offsets(const struct http_request *req, const struct execution *x,
	struct output_query *ret, struct error *e)
{
	struct execution_view view;
	const char *both = http_query(req, "offset"), *err = http_query(req, "stderrOffset");
	execution_view(x, &view);
	ret->own_stderr = err != NULL;
	for (unsigned i = 0; both && i < EXECUTION_STREAMS; i++)
		if (parse_offset(both, "offset", &view, i, &ret->position[i], e) < 0)
			return -1;
	if (err && parse_offset(err, "stderrOffset", &view, 1, &ret->position[1], e) < 0)
		return -1;
	return check_offset(x, &view, ret, e);
}

static int parse_follow(const char *text, bool *ret, struct error *e)
{
	*ret = !text || strcmp(text, "true") == 0;
	if (*ret || strcmp(text, "false") == 0)
		return 0;
	return error_set_field(
		e, ERROR_INVALID_FIELD, "follow", "\"follow\" must be \"true\" or \"false\"");
}

int output_parse_query(const struct http_request *req, const struct execution *x,
	struct output_query *ret, struct error *e)
{
	*ret = (struct output_query){0};
	if (parse_stream(http_query(req, "stream"), ret, e) < 0 ||
		parse_follow(http_query(req, "follow"), &ret->follow, e) < 0 ||
		decode_encoding(http_query(req, "encoding"), "encoding", &ret->base64, e) < 0)
		return -1;
	return parse_offsets(req, x, ret, e);
}

/* ---- what is given ---- */

/* Bytes that are missing cut it short. */
static int bytes_put(struct answer *a, const struct op_event *event, struct error *e)
{
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
	.put = bytes_put,
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

static void put_lengths(struct http_request *req, const struct execution *x, unsigned stream)
{
	struct execution_view view;
	char text[24];
	execution_view(x, &view);
	if (!execution_has_ended(x))
		return;
	snprintf(text, sizeof text, "%llu", (unsigned long long)view.length[stream]);
	http_add_header(req, "X-Output-Length", text);
	snprintf(text, sizeof text, "%llu", (unsigned long long)view.stored[stream]);
	http_add_header(req, "X-Output-Kept", text);
}

static void attach_stream(
	struct http_request *req, const struct execution *x, const struct output_query *query)
{
	struct execution_view view;
	enum stream_format format = format_of(req, query);
	bool bytes = format == STREAM_NONE;
	unsigned raw = query->ignores[0] ? 1 : 0;
	struct answer *a = api_answer(req, bytes ? &bytes_form : &stream_form);
	execution_view(x, &view);
	struct op_attach attach = {
		.execution = view.id, .stops = !query->follow, .piece = bytes ? CHUNK : 0};
	memcpy(attach.position, query->position, sizeof attach.position);
	memcpy(attach.ignores, query->ignores, sizeof attach.ignores);
	if (bytes) {
		attach.ignores[!raw] = true;
		put_lengths(req, x, raw);
	} else {
		((struct stream *)a->own)->base64 = query->base64;
		stream_begin(a, format);
	}
	a->call.sandbox = NULL; /* it may be gone */
	a->op = op_attach(&a->call, &attach);
	answer_run(a);
}

/* Other upgrades, such as that to HTTP/2, may be passed over. */
static bool wants_socket(const struct http_request *req)
{
	const char *upgrade = http_header(req, "upgrade");
	return upgrade && strcasecmp(upgrade, "websocket") == 0;
}

static void output_attach(struct http_request *req, struct execution *x)
{
	struct output_query query;
	struct error e;
	if (output_parse_query(req, x, &query, &e) < 0)
		http_respond_error(req, &e);
	else if (wants_socket(req))
		output_attach_socket(req, x, &query);
	else
		attach_stream(req, x, &query);
}

void output_handle(struct http_request *req)
{
	api_find_execution(req, output_attach);
}
