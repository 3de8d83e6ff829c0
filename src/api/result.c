#include "api/result.h"

#include "api/encode.h"
#include "api/processes.h"
#include "base/utf8.h"

static const char *const keys[EXECUTION_STREAMS] = {"stdout", "stderr"};

static void begin_result(struct answer *a, const struct execution_view *view)
{
	const struct result *r = a->own;
	struct json_writer w = {.out = &a->out};
	json_begin_object(&w);
	json_encode(&w, &execution_model, view, NULL);
	json_put_string(&w, "encoding", r->base64 ? "base64" : "utf8");
}

/* A string's inside: the writer's value without its quotes. */
static void append_inside(struct answer *a, const struct buf *bytes)
{
	const struct result *r = a->own;
	autobuf value = {0};
	struct json_writer w = {.out = &value};
	if (r->base64)
		json_base64(&w, bytes->data, bytes->len);
	else
		json_string_n(&w, bytes->data, bytes->len);
	if (!value.failed && value.len >= 2)
		buf_append(&a->out, value.data + 1, value.len - 2);
}

static void open_string(struct answer *a)
{
	struct result *r = a->own;
	if (r->open)
		return;
	r->open = true;
	buf_append_str(&a->out, ",\"");
	buf_append_str(&a->out, keys[r->current]);
	buf_append_str(&a->out, "\":\"");
}

static void close_string(struct answer *a)
{
	struct result *r = a->own;
	open_string(a);
	append_inside(a, &r->carry);
	buf_append_char(&a->out, '"');
	r->carry.len = 0;
	r->open = false;
	r->current++;
}

/* Text is not cut inside a character. */
static void put_piece(struct answer *a, struct buf *bytes)
{
	struct result *r = a->own;
	open_string(a);
	autobuf whole = buf_take(&r->carry);
	buf_append(&whole, bytes->data, bytes->len);
	if (!r->base64) {
		size_t tail = utf8_incomplete_tail(whole.data, whole.len);
		whole.len -= tail;
		buf_append(&r->carry, whole.data + whole.len, tail);
	}
	append_inside(a, &whole);
}

static int result_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct result *r = a->own;
	(void)e;
	if (event->kind == OP_EXITED)
		begin_result(a, event->execution);
	while (event->kind == OP_OUTPUT && r->current < event->output.stream)
		close_string(a);
	if (event->kind == OP_OUTPUT)
		put_piece(a, event->output.bytes);
	while (event->kind == OP_DONE && r->current < EXECUTION_STREAMS)
		close_string(a);
	if (event->kind == OP_DONE)
		buf_append_char(&a->out, '}');
	return 0;
}

static void result_finish(struct answer *a)
{
	buf_finish(&((struct result *)a->own)->carry);
}

const struct answer_form result_form = {.type = "application/json",
	.own_size = sizeof(struct result),
	.put = result_put,
	.fail = process_fail,
	.finish = result_finish};
