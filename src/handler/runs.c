#include "handler/runs.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/utf8.h"

#define CHUNK (64u * 1024)

struct run_call {
	struct http_request *req;
	struct code_run *run;
	const struct run_form *form;
	struct utf8_rest rests[2];
	bool hungry;
};

static void call_free(struct run_call *call)
{
	code_run_close(call->run);
	free(call);
}

static void put_event(struct run_call *call, struct code_event *event, struct buf *out)
{
	bool is_stderr = event->type == CODE_EVENT_STDERR;
	autobuf text = {0};
	if (is_stderr || event->type == CODE_EVENT_STDOUT) {
		struct code_field *f = &event->fields[0];
		utf8_join(&call->rests[is_stderr], f->data, f->len, &text);
		*f = (struct code_field){text.data, text.len};
		if (text.len == 0)
			return;
	}
	call->form->put(call->form, event, out);
}

static void pump(struct run_call *call)
{
	struct code_event event = {0};
	struct http_request *req = call->req;
	struct buf out = {0};
	if (!call->hungry)
		return;
	while (out.len < CHUNK && event.type < CODE_EVENT_END && code_run_next(call->run, &event))
		if (event.type != CODE_EVENT_LOST)
			put_event(call, &event, &out);
	if (out.len == 0 && event.type < CODE_EVENT_END)
		return;
	call->hungry = false;
	if (event.type >= CODE_EVENT_END)
		call_free(call); /* first: a write may find that the client has gone */
	if (out.len > 0)
		http_stream_write(req, &out);
	if (event.type == CODE_EVENT_LOST)
		http_stream_abort(req);
	else if (event.type == CODE_EVENT_END)
		http_stream_end(req);
}

static void run_changed(void *arg)
{
	pump(arg);
}

static void stream_proceed(void *arg)
{
	struct run_call *call = arg;
	call->hungry = true;
	pump(call);
}

static void stream_stopped(void *arg)
{
	call_free(arg);
}

int handler_run_code(struct http_request *req, struct code_context *c,
	const struct code_run_spec *spec, const struct run_form *form, struct error *e)
{
	struct run_call *call = calloc(1, sizeof *call);
	if (!call)
		abort();
	call->req = req;
	call->form = form;
	struct code_run_spec ours = *spec;
	ours.changed = run_changed;
	ours.arg = call;
	if (code_run_start(c, &ours, &call->run, e) < 0) {
		free(call);
		return -1;
	}
	form->begin(req, &(struct http_generator){stream_proceed, stream_stopped, call});
	return 0;
}
