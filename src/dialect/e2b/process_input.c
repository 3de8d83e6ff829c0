/*
 * SendInput and CloseStdin, and what they share with StreamInput. An answer says that the bytes are
 * on their way within the window of the process's stdin; a process that does not read makes its
 * writers wait.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "dialect/e2b/process_input.h"

/* ---- messages ---- */

struct input_message {
	const cJSON *process, *input;
};

static const struct json_field input_fields[] = {
	{"process", JSON_OBJECT, offsetof(struct input_message, process), 0, 0, 0},
	{"input", JSON_OBJECT, offsetof(struct input_message, input), JSON_REQUIRED, 0, 0},
};

struct bytes_message {
	const char *to_stdin, *to_pty;
};

static const struct json_field bytes_fields[] = {
	{"stdin", JSON_STRING, offsetof(struct bytes_message, to_stdin), 0, 0, CONNECT_BODY_LIMIT},
	{"pty", JSON_STRING, offsetof(struct bytes_message, to_pty), 0, 0, CONNECT_BODY_LIMIT},
};

int input_decode(const cJSON *input, struct buf *data, struct error *e)
{
	autoscratch memory = {0};
	struct bytes_message fields = {0};
	const char *bytes;
	size_t len;
	if (json_decode_known(input, bytes_fields, ARRAY_LEN(bytes_fields), "input.", &fields, e) <
		0)
		return -1;
	const char *text = fields.to_pty ? fields.to_pty : fields.to_stdin;
	if (!text)
		return error_set_field(
			e, ERROR_MISSING_FIELD, "input", "\"input\" must have stdin or pty");
	if (json_bytes(text, "input", &memory, &bytes, &len, e) < 0)
		return -1;
	buf_append(data, bytes, len);
	return data->failed ? error_set(e, ERROR_RESOURCE_EXHAUSTED, "out of memory") : 0;
}

static int check_open(const struct execution *x, struct error *e)
{
	if (execution_input_is_open(x))
		return 0;
	return error_set(e, ERROR_INTERNAL, "error writing to stdin: stdin not enabled or closed");
}

/* ---- writing, as the process makes room ---- */

static void writer_push(void *arg)
{
	struct input_writer *w = arg;
	struct error e;
	bool is_open = execution_input_is_open(w->execution);
	if (!w->busy)
		return;
	if (is_open && w->done < w->data.len)
		w->done += execution_input_write(
			w->execution, w->data.data + w->done, w->data.len - w->done);
	bool complete = w->done == w->data.len;
	if (!complete && is_open)
		return;
	w->busy = false;
	if (!complete)
		check_open(w->execution, &e);
	w->written(w->arg, complete ? NULL : &e);
}

void input_writer_open(struct input_writer *w, struct execution *x)
{
	w->execution = x;
	w->watcher =
		(struct execution_watcher){.changed = writer_push, .room = writer_push, .arg = w};
	execution_watch(x, &w->watcher);
}

void input_writer_write(struct input_writer *w, struct buf *data)
{
	buf_finish(&w->data);
	w->data = *data;
	*data = (struct buf){0};
	w->done = 0;
	w->busy = true;
	writer_push(w);
}

void input_writer_close(struct input_writer *w)
{
	if (w->execution)
		execution_unwatch(w->execution, &w->watcher);
	w->execution = NULL;
	buf_finish(&w->data);
}

/* ---- SendInput ---- */

struct input_call {
	struct http_request *req;
	struct input_writer writer;
};

static void input_written(void *arg, const struct error *e)
{
	struct input_call *call = arg;
	struct http_request *req = call->req;
	input_writer_close(&call->writer);
	free(call);
	if (e)
		http_respond_error(req, e);
	else
		connect_respond_empty(req);
}

static void input_aborted(void *arg)
{
	struct input_call *call = arg;
	input_writer_close(&call->writer);
	free(call);
}

static int decode_message(struct http_request *req, const cJSON *message, struct execution **x,
	struct buf *data, struct error *e)
{
	struct input_message fields = {0};
	struct process_selector selector;
	if (json_decode_known(message, input_fields, ARRAY_LEN(input_fields), "", &fields, e) < 0 ||
		process_decode_selector(fields.process, &selector, e) < 0 ||
		input_decode(fields.input, data, e) < 0)
		return -1;
	*x = process_find(envd_sandbox(req), &selector, e);
	return *x ? check_open(*x, e) : -1;
}

static void handle_send_input(struct http_request *req)
{
	struct error e = {0};
	struct execution *x;
	struct buf data = {0};
	cJSON *message = connect_request(req);
	if (!message)
		return;
	int r = decode_message(req, message, &x, &data, &e);
	cJSON_Delete(message);
	if (r < 0) {
		buf_finish(&data);
		http_respond_error(req, &e);
		return;
	}
	struct input_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->writer.written = input_written;
	call->writer.arg = call;
	http_on_abort(req, input_aborted, call);
	input_writer_open(&call->writer, x);
	input_writer_write(&call->writer, &data);
}

/* ---- CloseStdin ---- */

static int close_stdin(struct http_request *req, const cJSON *message, struct error *e)
{
	struct process_selector selector;
	struct execution_view view;
	if (process_decode_selector(
		    cJSON_GetObjectItemCaseSensitive(message, "process"), &selector, e) < 0)
		return -1;
	struct execution *x = process_find(envd_sandbox(req), &selector, e);
	if (!x)
		return -1;
	execution_view(x, &view);
	if (view.terminal)
		return error_set(e, ERROR_INTERNAL,
			"error closing stdin: a terminal has none; send Ctrl+D (0x04) to it");
	execution_input_close(x);
	return 0;
}

static void handle_close_stdin(struct http_request *req)
{
	struct error e = {0};
	cJSON *message = connect_request(req);
	if (!message)
		return;
	if (close_stdin(req, message, &e) < 0)
		http_respond_error(req, &e);
	else
		connect_respond_empty(req);
	cJSON_Delete(message);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/process.Process/SendInput", handle_send_input, CONNECT_BODY_LIMIT},
	{HTTP_POST, "/process.Process/CloseStdin", handle_close_stdin, CONNECT_BODY_LIMIT},
};

const struct route_table process_input_table = ROUTE_TABLE(routes);
