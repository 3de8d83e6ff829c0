/*
 * StreamInput: a stream of envelopes in, one empty message out when it has ended.
 *
 *     {"start":{"process":{"pid":1}}}        first
 *     {"data":{"input":{"stdin":"YWJj"}}}    as often as one likes
 *     {"keepalive":{}}
 *
 * The body is taken as the process takes its input: nothing is read from the client while a write
 * waits, so that at most one message and one piece of the body are in memory.
 */
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/process_input.h"

struct input_stream {
	struct http_request *req;
	struct buf in; /* received, not taken */
	struct input_writer writer;
	bool ended;           /* the body is complete */
	bool running;         /* advance is on the stack */
	struct error failure; /* of a write within advance */
};

static void stream_free(struct input_stream *s)
{
	input_writer_close(&s->writer);
	buf_finish(&s->in);
	free(s);
}

static void stream_answer(struct input_stream *s, const struct error *e)
{
	struct http_request *req = s->req;
	struct buf body = {0};
	stream_free(s);
	if (!e) {
		size_t begin = envelope_begin(&body);
		buf_append_str(&body, "{}");
		envelope_end(&body, begin);
	}
	envelope_put_end(&body, e);
	http_respond(req, 200, "application/connect+json", &body);
}

/* ---- messages ---- */

static int take_start(struct input_stream *s, const cJSON *start, struct error *e)
{
	struct process_selector selector;
	if (s->writer.execution)
		return error_set(e, ERROR_INVALID_REQUEST, "the stream has been started already");
	if (process_decode_selector(
		    cJSON_GetObjectItemCaseSensitive(start, "process"), &selector, e) < 0)
		return -1;
	struct execution *x = process_find(envd_sandbox(s->req), &selector, e);
	if (!x)
		return -1;
	input_writer_open(&s->writer, x);
	return 0;
}

static int take_data(struct input_stream *s, const cJSON *data, struct error *e)
{
	struct buf bytes = {0};
	if (!s->writer.execution)
		return error_set(e, ERROR_INVALID_REQUEST, "the first message must be a start");
	if (input_decode(cJSON_GetObjectItemCaseSensitive(data, "input"), &bytes, e) < 0) {
		buf_finish(&bytes);
		return -1;
	}
	input_writer_write(&s->writer, &bytes);
	return 0;
}

static int take_message(struct input_stream *s, const cJSON *message, struct error *e)
{
	const cJSON *start = cJSON_GetObjectItemCaseSensitive(message, "start");
	const cJSON *data = cJSON_GetObjectItemCaseSensitive(message, "data");
	if (start)
		return take_start(s, start, e);
	return data ? take_data(s, data, e) : 0;
}

/* ---- the body ---- */

/* Takes what has come, until it is used up or a write has to wait. */
static void stream_advance(struct input_stream *s)
{
	struct error e = {0};
	cJSON *message;
	int r = 1;
	s->running = true;
	while (r > 0 && !s->writer.busy) {
		r = envelope_take(&s->in, &message, &e);
		if (r <= 0)
			break;
		r = take_message(s, message, &e) < 0 ? -1 : 1;
		cJSON_Delete(message);
		if (s->failure.code != ERROR_NONE) {
			e = s->failure;
			r = -1;
		}
	}
	s->running = false;
	if (r < 0)
		stream_answer(s, &e);
	else if (s->writer.busy)
		http_body_pause(s->req);
	else if (!s->ended)
		http_body_resume(s->req);
	else if (s->in.len > 0) {
		error_set(&e, ERROR_INVALID_REQUEST, "the body ends within an envelope");
		stream_answer(s, &e);
	} else {
		stream_answer(s, NULL);
	}
}

static void stream_written(void *arg, const struct error *e)
{
	struct input_stream *s = arg;
	if (s->running && e)
		s->failure = *e;
	else if (e)
		stream_answer(s, e);
	else if (!s->running)
		stream_advance(s);
}

static void body_data(void *arg, const char *data, size_t len)
{
	struct input_stream *s = arg;
	buf_append(&s->in, data, len);
	stream_advance(s);
}

static void body_end(void *arg)
{
	struct input_stream *s = arg;
	s->ended = true;
	if (!s->writer.busy)
		stream_advance(s);
}

static void body_aborted(void *arg)
{
	stream_free(arg);
}

static void handle_stream_input(struct http_request *req)
{
	struct error e;
	if (!connect_is_stream(req)) {
		error_set(&e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"streaming calls are made with 'Content-Type: application/connect+json'");
		http_respond_error(req, &e);
		return;
	}
	struct input_stream *s = calloc(1, sizeof *s);
	if (!s)
		abort();
	s->req = req;
	s->writer.written = stream_written;
	s->writer.arg = s;
	const struct http_body_sink sink = {body_data, body_end, body_aborted, s};
	http_on_abort(req, body_aborted, s);
	http_body_stream(req, &sink);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/StreamInput", handle_stream_input, UINT64_MAX, true},
};

const struct route_table process_stream_input_table = ROUTE_TABLE(routes);
