#include "dialect/e2b/process_events.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static struct json_writer begin_event(struct buf *out, const char *name)
{
	struct json_writer w = {.out = out};
	json_begin_object(&w);
	json_key(&w, "event");
	json_begin_object(&w);
	json_key(&w, name);
	json_begin_object(&w);
	return w;
}

static void end_event(struct json_writer *w)
{
	for (int i = 0; i < 3; i++)
		json_end_object(w);
}

void process_put_start(struct buf *out, int32_t pid)
{
	size_t begin = envelope_begin(out);
	struct json_writer w = begin_event(out, "start");
	json_put_int(&w, "pid", pid);
	end_event(&w);
	envelope_end(out, begin);
}

void process_put_data(struct buf *out, const char *stream, const struct buf *data)
{
	size_t begin = envelope_begin(out);
	struct json_writer w = begin_event(out, "data");
	json_key(&w, stream);
	json_base64(&w, data->data, data->len);
	end_event(&w);
	envelope_end(out, begin);
}

/* As Go's runtime, in which envd is written, calls a signal. */
static void format_signal(int number, char out[64])
{
	const char *name = strsignal(number);
	snprintf(out, 64, "signal: %s", name ? name : "unknown");
	for (char *p = out; *p; p++)
		*p = (char)tolower((unsigned char)*p);
}

void process_put_end(struct buf *out, const struct execution_view *view)
{
	char status[64], error[160];
	size_t begin = envelope_begin(out);
	struct json_writer w = begin_event(out, "end");
	if (view->signal)
		format_signal((int)view->signal, status);
	else
		snprintf(status, sizeof status, "exit status %d", (int)view->exit_code);
	snprintf(error, sizeof error, "%s%s", status,
		view->oom_killed ? " (the sandbox ran out of memory)" : "");
	if (view->signal || view->exit_code)
		json_put_int(&w, "exitCode", view->signal ? -1 : view->exit_code);
	if (!view->signal)
		json_put_bool(&w, "exited", true);
	json_put_string(&w, "status", status);
	if (view->signal || view->exit_code)
		json_put_string(&w, "error", error);
	end_event(&w);
	envelope_end(out, begin);
}

const char *process_stream_name(bool terminal, unsigned index)
{
	static const char *const names[EXECUTION_STREAMS] = {"stdout", "stderr"};
	return terminal ? "pty" : names[index];
}
