/*
 * A process by WebSocket: its output, its stdin, its terminal. Bytes are binary messages in both
 * directions; everything else is a JSON object as a text message.
 *
 *     from us    {"type":"start", what GET on the process gives}
 *                {"type":"data","stream":"stdout"|"stderr","offset":N}   whose the binary messages
 *                                                           that follow are, and from which byte
 *                {"type":"truncated","stream","from":N,"to":N}           bytes that were not kept
 *                {"type":"exit", the result without its output}, then the close
 *                {"type":"error","code","message"}          of the client's last message
 *     to us      {"type":"resize","rows":N,"columns":N}
 *                {"type":"signal","signal":"INT","tree":false}
 *                {"type":"end"}                             of stdin
 *
 * Several clients may watch and write. One that goes away leaves the process alone.
 */
#include <string.h>

#include "api/encode.h"
#include "api/output.h"
#include "api/processes.h"

#define NO_STREAM EXECUTION_STREAMS

static const char *const stream_names[EXECUTION_STREAMS] = {"stdout", "stderr"};

struct viewer {
	unsigned current; /* whose bytes the client believes to get */
	uint64_t told;    /* and from where on */
};

/* ---- to the client ---- */

static struct json_writer message_begin(struct answer *a, const char *type)
{
	struct json_writer w = {.out = &a->out};
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void message_send(struct answer *a, struct json_writer *w)
{
	json_end_object(w);
	answer_send_text(a);
}

static void viewer_send_error(struct answer *a, const struct error *e)
{
	struct json_writer w = message_begin(a, "error");
	json_put_string(&w, "code", error_name(e->code));
	json_put_string(&w, "message", e->message);
	message_send(a, &w);
}

static void viewer_send_truncated(struct answer *a, const struct op_output *o)
{
	struct json_writer w = message_begin(a, "truncated");
	json_put_string(&w, "stream", stream_names[o->stream]);
	json_put_int(&w, "from", (int64_t)(o->offset - o->missing));
	json_put_int(&w, "to", (int64_t)o->offset);
	message_send(a, &w);
}

static void viewer_send_place(struct answer *a, const struct op_output *o)
{
	struct viewer *v = a->own;
	if (v->current == o->stream && v->told == o->offset)
		return;
	struct json_writer w = message_begin(a, "data");
	json_put_string(&w, "stream", stream_names[o->stream]);
	json_put_int(&w, "offset", (int64_t)o->offset);
	message_send(a, &w);
	v->current = o->stream;
}

static void viewer_send_output(struct answer *a, const struct op_output *o)
{
	struct viewer *v = a->own;
	if (o->missing > 0)
		viewer_send_truncated(a, o);
	if (o->bytes->len == 0)
		return;
	viewer_send_place(a, o);
	answer_send_binary(a, o->bytes);
	v->told = o->offset + o->bytes->len;
}

static int viewer_put(struct answer *a, const struct op_event *event, struct error *e)
{
	struct json_writer w;
	(void)e;
	if (event->kind == OP_OUTPUT)
		viewer_send_output(a, &event->output);
	if (event->kind != OP_STARTED && event->kind != OP_EXITED)
		return 0;
	w = message_begin(a, event->kind == OP_STARTED ? "start" : "exit");
	if (event->kind == OP_STARTED)
		json_encode(&w, &process_model, event->execution, NULL);
	else
		json_encode(&w, &execution_model, event->execution, NULL);
	message_send(a, &w);
	return 0;
}

struct answer *output_socket_answer(struct http_request *req)
{
	static const struct answer_form form = {
		.own_size = sizeof(struct viewer), .put = viewer_put, .fail = process_fail};
	struct answer *a = process_answer(req, &form);
	((struct viewer *)a->own)->current = NO_STREAM;
	return a;
}

/* ---- from the client ---- */

struct control {
	const char *type, *signal;
	int64_t rows, columns;
	bool tree;
};

static const struct json_field control_fields[] = {
	{"type", FIELD_TEXT, offsetof(struct control, type), FIELD_REQUIRED, 0, 16},
	{"signal", FIELD_TEXT, offsetof(struct control, signal), 0, 0, 16},
	{"rows", FIELD_INTEGER, offsetof(struct control, rows), 0, 1, 1000},
	{"columns", FIELD_INTEGER, offsetof(struct control, columns), 0, 1, 1000},
	{"tree", FIELD_BOOL, offsetof(struct control, tree), 0, 0, 0},
};

static int control_signal(struct answer *a, const struct control *c, struct error *e)
{
	int number = c->signal ? execution_signal_of(c->signal) : 0;
	if (number == 0)
		return error_set(
			e, ERROR_INVALID_FIELD, "\"signal\" must name one, such as \"INT\"");
	op_put(a->op, &(struct op_item){OP_ITEM_SIGNAL, .signal = {number, c->tree}});
	return 0;
}

static int control_do(struct answer *a, const struct control *c, struct error *e)
{
	if (strcmp(c->type, "signal") == 0)
		return control_signal(a, c, e);
	if (strcmp(c->type, "resize") == 0)
		op_put(a->op, &(struct op_item){OP_ITEM_RESIZE,
				      .size = {(unsigned)c->rows, (unsigned)c->columns}});
	else if (strcmp(c->type, "end") == 0)
		op_put(a->op, &(struct op_item){OP_ITEM_END});
	else
		return error_set(
			e, ERROR_INVALID_FIELD, "there is no message of the type '%.16s'", c->type);
	return 0;
}

static int control_take(struct answer *a, const char *text, size_t len, struct error *e)
{
	struct control c = {0};
	cJSON *tree = NULL;
	int r = json_parse(text, len, &tree, e);
	if (r == 0 && !cJSON_IsObject(tree))
		r = error_set(e, ERROR_INVALID_JSON, "a message must be a JSON object");
	if (r == 0)
		r = json_decode(tree, control_fields, ARRAY_LEN(control_fields), "", &c, e);
	if (r == 0)
		r = control_do(a, &c, e);
	cJSON_Delete(tree);
	return r;
}

static int viewer_message(
	struct answer *a, bool text, const char *data, size_t len, struct error *e)
{
	if (!auth_may(a->req, HTTP_SCOPE_USE))
		return error_set(e, ERROR_SCOPE_MISSING,
			"input needs a key of the scope 'use'; this one may look");
	if (text)
		return control_take(a, data, len, e);
	op_put(a->op, &(struct op_item){OP_ITEM_DATA, .bytes = {data, len}});
	return 0;
}

const struct answer_socket output_socket = {viewer_message, viewer_send_error};
