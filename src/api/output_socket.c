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
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/encode.h"
#include "api/output.h"
#include "http/websocket.h"

#define MESSAGE_MAX (128u * 1024)
#define CHUNK       (64u * 1024)
#define QUEUE_MAX   (256u * 1024)
#define NO_STREAM   EXECUTION_STREAMS

struct viewer {
	struct websocket *socket;
	struct execution *execution;
	struct execution_watcher watcher;
	bool follow;
	uint64_t until[EXECUTION_STREAMS];
	unsigned current;     /* whose bytes the client believes to get */
	uint64_t told;        /* and from where on */
	struct buf input;     /* waits for room */
	bool input_ends;      /* behind it */
	bool waits_for_input; /* and so does the client */
	bool failed;          /* the spool cannot be read */
};

static void viewer_free(struct viewer *v)
{
	execution_unwatch(v->execution, &v->watcher);
	buf_finish(&v->input);
	free(v);
}

static void viewer_close(struct viewer *v, unsigned code, const char *reason)
{
	struct websocket *socket = v->socket;
	viewer_free(v);
	websocket_close(socket, code, reason);
}

/* ---- to the client ---- */

static void send_text(struct viewer *v, struct buf *text)
{
	if (!text->failed)
		websocket_send(v->socket, WEBSOCKET_TEXT, text->data, text->len);
}

static struct json_writer message_begin(struct buf *out, const char *type)
{
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	json_put_string(&w, "type", type);
	return w;
}

static void send_start(struct viewer *v)
{
	autobuf text = {0};
	struct execution_view view;
	struct json_writer w = message_begin(&text, "start");
	execution_view(v->execution, &view);
	encode_process(&w, &view);
	json_end_object(&w);
	send_text(v, &text);
}

static void send_exit(struct viewer *v)
{
	autobuf text = {0};
	struct execution_view view;
	struct json_writer w = message_begin(&text, "exit");
	execution_view(v->execution, &view);
	encode_execution(&w, &view);
	json_end_object(&w);
	send_text(v, &text);
}

static void send_error(struct viewer *v, const struct error *e)
{
	autobuf text = {0};
	struct json_writer w = message_begin(&text, "error");
	json_put_string(&w, "code", error_name(e->code));
	json_put_string(&w, "message", e->message);
	json_end_object(&w);
	send_text(v, &text);
}

static void send_truncated(struct viewer *v, unsigned stream, uint64_t from, uint64_t to)
{
	autobuf text = {0};
	struct json_writer w = message_begin(&text, "truncated");
	json_put_string(&w, "stream", stream == 0 ? "stdout" : "stderr");
	json_put_int(&w, "from", (int64_t)from);
	json_put_int(&w, "to", (int64_t)to);
	json_end_object(&w);
	send_text(v, &text);
}

static void send_place(struct viewer *v, unsigned stream, uint64_t offset)
{
	autobuf text = {0};
	if (v->current == stream && v->told == offset)
		return;
	struct json_writer w = message_begin(&text, "data");
	json_put_string(&w, "stream", stream == 0 ? "stdout" : "stderr");
	json_put_int(&w, "offset", (int64_t)offset);
	json_end_object(&w);
	send_text(v, &text);
	v->current = stream;
}

/* True when something was there to send. */
static bool send_output(struct viewer *v, unsigned stream)
{
	autobuf bytes = {0};
	uint64_t before = v->watcher.position[stream];
	if (v->watcher.ignores[stream])
		return false;
	if (!execution_read(v->execution, &v->watcher, stream, CHUNK, &bytes)) {
		v->failed = true;
		return false;
	}
	uint64_t after = v->watcher.position[stream];
	if (after == before)
		return false;
	if (after - bytes.len > before)
		send_truncated(v, stream, before, after - bytes.len);
	if (bytes.len == 0)
		return true;
	send_place(v, stream, after - bytes.len);
	websocket_send(v->socket, WEBSOCKET_BINARY, bytes.data, bytes.len);
	v->told = after;
	return true;
}

static bool is_all_sent(const struct viewer *v)
{
	struct execution_view view;
	execution_view(v->execution, &view);
	for (unsigned i = 0; i < EXECUTION_STREAMS; i++) {
		uint64_t end = v->follow ? view.length[i] : v->until[i];
		if (!v->watcher.ignores[i] && v->watcher.position[i] < end)
			return false;
	}
	return !v->follow || execution_has_ended(v->execution);
}

static void pump(struct viewer *v)
{
	bool more = true;
	while (more && websocket_queued(v->socket) < QUEUE_MAX) {
		more = false;
		for (unsigned i = 0; i < EXECUTION_STREAMS; i++)
			more |= send_output(v, i);
	}
	if (v->failed) {
		viewer_close(v, WEBSOCKET_INTERNAL, "the output cannot be read");
		return;
	}
	if (more || !is_all_sent(v))
		return;
	if (execution_has_ended(v->execution))
		send_exit(v);
	viewer_close(v, WEBSOCKET_NORMAL, NULL);
}

static void viewer_changed(void *arg)
{
	pump(arg);
}

static void viewer_writable(void *arg)
{
	pump(arg);
}

static void viewer_closed(void *arg, unsigned code, const char *reason)
{
	(void)code;
	(void)reason;
	viewer_free(arg);
}

/* ---- from the client ---- */

static void push_input(struct viewer *v)
{
	size_t n = execution_input_write(v->execution, v->input.data, v->input.len);
	buf_consume(&v->input, n);
	if (v->input.len > 0 && !execution_input_is_open(v->execution))
		buf_finish(&v->input);
	if (v->input.len == 0 && v->input_ends)
		execution_input_close(v->execution);
	if (v->input.len > 0 && !v->waits_for_input)
		websocket_pause(v->socket);
	else if (v->input.len == 0 && v->waits_for_input)
		websocket_resume(v->socket);
	v->waits_for_input = v->input.len > 0;
}

static void viewer_room(void *arg)
{
	struct viewer *v = arg;
	if (v->input.len > 0 || v->input_ends)
		push_input(v);
}

static int take_input(struct viewer *v, const char *data, size_t len, struct error *e)
{
	if (!execution_input_is_open(v->execution) || v->input_ends)
		return error_set(e, ERROR_STDIN_CLOSED, "the process has no open stdin");
	buf_append(&v->input, data, len);
	push_input(v);
	return 0;
}

struct control {
	const char *type, *signal;
	int64_t rows, columns;
	bool tree;
};

static const struct json_field control_fields[] = {
	{"type", JSON_STRING, offsetof(struct control, type), JSON_REQUIRED, 0, 16},
	{"signal", JSON_STRING, offsetof(struct control, signal), 0, 0, 16},
	{"rows", JSON_INTEGER, offsetof(struct control, rows), 0, 1, 1000},
	{"columns", JSON_INTEGER, offsetof(struct control, columns), 0, 1, 1000},
	{"tree", JSON_BOOL, offsetof(struct control, tree), 0, 0, 0},
};

static int do_control(struct viewer *v, const struct control *c, struct error *e)
{
	if (strcmp(c->type, "resize") == 0) {
		if (execution_resize(v->execution, (unsigned)c->rows, (unsigned)c->columns))
			return 0;
		return error_set(e, ERROR_INVALID_FIELD,
			"a terminal is needed, and \"rows\" and \"columns\" from 1 to 1000");
	}
	if (strcmp(c->type, "signal") == 0) {
		int number = c->signal ? execution_signal_of(c->signal) : 0;
		if (number == 0)
			return error_set(e, ERROR_INVALID_FIELD,
				"\"signal\" must name one, such as \"INT\"");
		execution_signal(v->execution, number, c->tree);
		return 0;
	}
	if (strcmp(c->type, "end") == 0) {
		v->input_ends = true;
		push_input(v);
		return 0;
	}
	return error_set(
		e, ERROR_INVALID_FIELD, "there is no message of the type '%.16s'", c->type);
}

static int take_control(struct viewer *v, const char *text, size_t len, struct error *e)
{
	struct control c = {0};
	cJSON *tree = NULL;
	int r = json_parse(text, len, &tree, e);
	if (r == 0 && !cJSON_IsObject(tree))
		r = error_set(e, ERROR_INVALID_JSON, "a message must be a JSON object");
	if (r == 0)
		r = json_decode(tree, control_fields, ARRAY_LEN(control_fields), "", &c, e);
	if (r == 0)
		r = do_control(v, &c, e);
	cJSON_Delete(tree);
	return r;
}

static void viewer_message(void *arg, enum websocket_kind kind, const char *data, size_t len)
{
	struct viewer *v = arg;
	struct error e;
	int r = kind == WEBSOCKET_BINARY ? take_input(v, data, len, &e)
					 : take_control(v, data, len, &e);
	if (r < 0)
		send_error(v, &e);
}

void output_attach_socket(
	struct http_request *req, struct execution *x, const struct output_query *query)
{
	static const struct websocket_events events = {
		.message = viewer_message,
		.writable = viewer_writable,
		.closed = viewer_closed,
		.message_max = MESSAGE_MAX,
	};
	struct execution_view view;
	struct viewer *v = calloc(1, sizeof *v);
	if (!v)
		abort();
	execution_view(x, &view);
	v->execution = x;
	v->follow = query->follow;
	memcpy(v->until, view.length, sizeof v->until);
	v->current = NO_STREAM;
	v->watcher = (struct execution_watcher){
		.changed = viewer_changed, .room = viewer_room, .arg = v, .paced = true};
	memcpy(v->watcher.position, query->position, sizeof v->watcher.position);
	memcpy(v->watcher.ignores, query->ignores, sizeof v->watcher.ignores);
	if (http_upgrade_websocket(req, &events, v, &v->socket) < 0) {
		free(v);
		return;
	}
	execution_watch(x, &v->watcher);
	send_start(v);
	pump(v);
}
