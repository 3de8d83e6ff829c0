/*
 * POST …/stdin: the body's bytes for a process that was started with an open stdin, as they come.
 *
 *     ?offset=N     what the body begins with, counted from the first byte of stdin; bytes that
 *                   the process has got already are passed over, so a request can be repeated
 *     ?close=true   end of stdin behind the body
 *
 * The answer comes when the process's pipe has taken all of it: what is acknowledged is not lost
 * with us. While the process does not read, the client waits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/lookup.h"

struct writing {
	struct http_request *req;
	struct execution *execution;
	struct execution_watcher watcher;
	struct buf waiting; /* one piece of the body at most */
	uint64_t skip;      /* bytes of the body that the process has */
	bool paused, complete, close;
};

static void writing_free(struct writing *w)
{
	execution_unwatch(w->execution, &w->watcher);
	buf_finish(&w->waiting);
	free(w);
}

static void respond(struct writing *w)
{
	struct http_request *req = w->req;
	struct buf body = {0};
	struct json_writer j = {.out = &body};
	json_begin_object(&j);
	json_put_int(&j, "offset", (int64_t)execution_input_offset(w->execution));
	json_put_bool(&j, "open", execution_input_is_open(w->execution));
	json_end_object(&j);
	writing_free(w);
	api_respond_json(req, 200, &body);
}

static void fail(struct writing *w)
{
	struct http_request *req = w->req;
	struct error e;
	error_set(&e, ERROR_STDIN_CLOSED, "the process does not read its stdin any more");
	writing_free(w);
	http_respond_error(req, &e);
}

/* Nobody will read what has not been read by now. */
static bool is_lost(const struct writing *w, uint64_t left)
{
	struct execution *x = w->execution;
	bool unwritten = w->waiting.len > 0 || !w->complete;
	if (execution_input_is_deaf(x))
		return true;
	if (execution_has_ended(x))
		return unwritten || left > 0;
	return unwritten && !execution_input_is_open(x);
}

/* Writes what waits; true while the writing goes on. */
static bool advance(struct writing *w)
{
	struct execution *x = w->execution;
	size_t n = execution_input_write(x, w->waiting.data, w->waiting.len);
	buf_consume(&w->waiting, n);
	uint64_t left = execution_input_offset(x) - execution_input_delivered(x);
	if (is_lost(w, left)) {
		fail(w);
		return false;
	}
	if (w->waiting.len > 0 || !w->complete)
		return true;
	if (w->close)
		execution_input_close(x);
	if (left > 0)
		return true;
	respond(w);
	return false;
}

static void writing_room(void *arg)
{
	struct writing *w = arg;
	struct http_request *req = w->req;
	if (!advance(w) || !w->paused || w->waiting.len > 0)
		return;
	w->paused = false;
	http_body_resume(req);
}

static void writing_changed(void *arg)
{
	struct writing *w = arg;
	if (!execution_input_is_open(w->execution))
		advance(w);
}

static void body_data(void *arg, const char *data, size_t len)
{
	struct writing *w = arg;
	struct http_request *req = w->req;
	size_t skipped = w->skip < len ? (size_t)w->skip : len;
	w->skip -= skipped;
	buf_append(&w->waiting, data + skipped, len - skipped);
	if (!advance(w) || w->waiting.len == 0)
		return;
	w->paused = true;
	http_body_pause(req);
}

static void body_end(void *arg)
{
	struct writing *w = arg;
	w->complete = true;
	advance(w);
}

static void body_aborted(void *arg)
{
	writing_free(arg);
}

static int parse_offset(
	const struct http_request *req, const struct execution *x, uint64_t *skip, struct error *e)
{
	const char *text = http_query(req, "offset");
	char *end;
	*skip = 0;
	if (!text)
		return 0;
	uint64_t have = execution_input_offset(x), offset = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end)
		return error_set_field(
			e, ERROR_INVALID_FIELD, "offset", "\"offset\" must be a number of bytes");
	if (offset > have)
		return error_set_field(e, ERROR_INVALID_FIELD, "offset",
			"\"offset\" leaves a gap: the process has got %llu bytes",
			(unsigned long long)have);
	*skip = have - offset;
	return 0;
}

static void write_input(struct http_request *req, struct execution *x)
{
	struct error e;
	uint64_t skip;
	const char *close = http_query(req, "close");
	int r = parse_offset(req, x, &skip, &e);
	if (r == 0 && close && strcmp(close, "true") != 0 && strcmp(close, "false") != 0)
		r = error_set_field(&e, ERROR_INVALID_FIELD, "close",
			"\"close\" must be \"true\" or \"false\"");
	if (r == 0 && !execution_input_is_open(x))
		r = execution_has_ended(x)
			    ? error_set(&e, ERROR_NOT_RUNNING, "the process has ended")
			    : error_set(&e, ERROR_STDIN_CLOSED, "the process has no open stdin");
	if (r < 0) {
		http_respond_error(req, &e);
		return;
	}
	struct writing *w = calloc(1, sizeof *w);
	if (!w)
		abort();
	*w = (struct writing){.req = req,
		.execution = x,
		.skip = skip,
		.close = close && strcmp(close, "true") == 0};
	w->watcher = (struct execution_watcher){
		.changed = writing_changed, .room = writing_room, .arg = w};
	execution_watch(x, &w->watcher);
	http_on_abort(req, body_aborted, w);
	http_body_stream(req, &(struct http_body_sink){body_data, body_end, body_aborted, w});
}

static void handle_stdin(struct http_request *req)
{
	api_find_execution(req, write_input);
}

static const struct http_route process_input_routes[] = {
	{HTTP_POST, "/v1/sandboxes/{id}/processes/{process}/stdin", handle_stdin, INT64_MAX, true},
};

const struct route_table processes_input_table = ROUTE_TABLE(process_input_routes);
