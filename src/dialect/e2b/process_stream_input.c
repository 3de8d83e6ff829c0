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
#include "dialect/e2b/process_input.h"

struct input_stream {
	struct process_selector selector;
	bool started;
	struct buf in; /* of the body: the beginning of a message */
};

/* ---- the answer ---- */

static void input_stream_put_done(struct answer *a)
{
	size_t begin = envelope_begin(&a->out);
	buf_append_str(&a->out, "{}");
	envelope_end(&a->out, begin);
	envelope_put_end(&a->out, NULL);
}

static int input_stream_put(struct answer *a, const struct op_event *event, struct error *e)
{
	(void)e;
	if (event->kind == OP_DONE)
		input_stream_put_done(a);
	return 0;
}

static enum answer_failure input_stream_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	const struct input_stream *s = a->own;
	if (e->code == ERROR_NONE) { /* it has ended before it was started */
		input_stream_put_done(a);
		return ANSWER_PUT;
	}
	input_explain(e);
	if (event && event->reason == OP_NO_EXECUTION)
		process_not_found(&s->selector, e);
	return rpc_stream_fail(a, e, event);
}

static void input_stream_finish(struct answer *a)
{
	buf_finish(&((struct input_stream *)a->own)->in);
}

/* ---- messages ---- */

static int take_start(struct answer *a, const cJSON *start, struct error *e)
{
	struct input_stream *s = a->own;
	if (s->started)
		return error_set(e, ERROR_INVALID_REQUEST, "the stream has been started already");
	if (process_decode_selector(
		    cJSON_GetObjectItemCaseSensitive(start, "process"), &s->selector, e) < 0)
		return -1;
	s->started = true;
	op_put(a->op, &(struct op_item){OP_ITEM_PROCESS, .process = process_ref(&s->selector)});
	return 0;
}

static int process_stream_input_take_data(struct answer *a, const cJSON *data, struct error *e)
{
	const struct input_stream *s = a->own;
	autoscratch memory = {0};
	const char *bytes;
	size_t len;
	if (!s->started)
		return error_set(e, ERROR_INVALID_REQUEST, "the first message must be a start");
	if (input_decode(
		    cJSON_GetObjectItemCaseSensitive(data, "input"), &memory, &bytes, &len, e) < 0)
		return -1;
	op_put(a->op, &(struct op_item){OP_ITEM_DATA, .bytes = {bytes, len}});
	return 0;
}

static int take_message(struct answer *a, const cJSON *message, struct error *e)
{
	const cJSON *start = cJSON_GetObjectItemCaseSensitive(message, "start");
	const cJSON *data = cJSON_GetObjectItemCaseSensitive(message, "data");
	if (start)
		return take_start(a, start, e);
	return data ? process_stream_input_take_data(a, data, e) : 0;
}

/* ---- the body ---- */

/*
 * Takes messages while the process takes its input. What is left then is of this piece, since at
 * most the beginning of one message was kept before: it is read again later.
 */
static ptrdiff_t input_stream_data(struct answer *a, const char *bytes, size_t len, struct error *e)
{
	struct input_stream *s = a->own;
	cJSON *message = NULL;
	int r = 1;
	buf_append(&s->in, bytes, len);
	while (r > 0 && a->op && op_room(a->op) > 0) {
		r = envelope_take(&s->in, &message, e);
		if (r <= 0)
			break;
		r = take_message(a, message, e) < 0 ? -1 : 1;
		cJSON_Delete(message);
	}
	if (r < 0)
		return -1;
	size_t left = r == 0 ? 0 : s->in.len < len ? s->in.len : len;
	s->in.len -= left;
	return (ptrdiff_t)(len - left);
}

static int input_stream_end(struct answer *a, struct error *e)
{
	const struct input_stream *s = a->own;
	if (s->in.len > 0)
		return error_set(e, ERROR_INVALID_REQUEST, "the body ends within an envelope");
	return s->started ? 0 : -1;
}

static void handle_stream_input(struct http_request *req)
{
	static const struct answer_form form = {.type = "application/connect+json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct input_stream),
		.put = input_stream_put,
		.fail = input_stream_fail,
		.finish = input_stream_finish};
	static const struct answer_body body = {input_stream_data, input_stream_end};
	struct error e;
	struct answer *a = envd_answer(req, &form);
	if (!rpc_is_stream(req)) {
		error_set(&e, ERROR_UNSUPPORTED_MEDIA_TYPE,
			"streaming calls are made with 'Content-Type: application/connect+json'");
		answer_refuse(a, &e);
		return;
	}
	a->op = op_input(&a->call, &(struct op_input){.named_later = true});
	answer_run_with_body(a, &body);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/StreamInput", handle_stream_input, UINT64_MAX, true},
};

const struct route_table process_stream_input_table = ROUTE_TABLE(routes);
