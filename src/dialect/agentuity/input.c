/*
 * POST /input announces a stream, PUT /input/{id} feeds it, and a create with `stream.stdin` says
 * whose stdin it is. The SDK announces, creates, then feeds; feeding first waits for the create.
 * The end of the body is the end of stdin, and so is a client that goes away.
 *
 * A stream is used once. What is announced and not used is forgotten after a while.
 */
#include "dialect/agentuity/input.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"

#define ANNOUNCED_MAX 100 /* of a tenant */
#define ANNOUNCED_MS  (10 * 60 * 1000)
#define PREFIX        "stream_"

struct agentuity_input {
	struct agentuity *dialect;
	char id[ID_SIZE];
	char *tenant;
	int64_t created_ms;
	struct http_request *req;    /* that feeds it; NULL: none yet */
	struct execution *execution; /* NULL: not known yet */
	struct execution_watcher watcher;
	struct buf waiting; /* one piece of the body at most */
	bool paused, complete;
	struct agentuity_input *prev, *next;
};

static void input_free(struct agentuity_input *in)
{
	DL_DELETE(in->dialect->inputs, in);
	if (in->execution)
		execution_unwatch(in->execution, &in->watcher);
	buf_finish(&in->waiting);
	free(in->tenant);
	free(in);
}

static struct agentuity_input *input_find(
	const struct agentuity *d, const char *tenant, const char *text)
{
	char id[ID_SIZE];
	struct agentuity_input *in;
	if (!agentuity_parse_id(text, PREFIX, id))
		return NULL;
	DL_FOREACH (d->inputs, in)
		if (strcmp(in->id, id) == 0 && strcmp(in->tenant, tenant) == 0)
			return in;
	return NULL;
}

/* ---- announced ---- */

/* How many this tenant has left. */
static unsigned forget_old(struct agentuity *d, const char *tenant)
{
	unsigned count = 0;
	struct agentuity_input *in, *next;
	int64_t now = clock_wall_ms();
	DL_FOREACH_SAFE (d->inputs, in, next) {
		if (!in->req && !in->execution && now - in->created_ms > ANNOUNCED_MS)
			input_free(in);
		else if (strcmp(in->tenant, tenant) == 0)
			count++;
	}
	return count;
}

static void handle_announce(struct http_request *req)
{
	struct error e;
	struct buf body = {0};
	struct json_writer w = {.out = &body};
	struct agentuity *d = agentuity_of(req);
	if (forget_old(d, tenant_of(req)) >= ANNOUNCED_MAX) {
		error_set(&e, ERROR_QUOTA_EXCEEDED, "there are %d streams for stdin already",
			ANNOUNCED_MAX);
		http_respond_error(req, &e);
		return;
	}
	struct agentuity_input *in = calloc(1, sizeof *in);
	if (!in || !(in->tenant = strdup(tenant_of(req))))
		abort();
	in->dialect = d;
	in->created_ms = clock_wall_ms();
	id_generate(in->id);
	DL_APPEND(d->inputs, in);
	json_begin_object(&w);
	json_put_bool(&w, "success", true);
	agentuity_put_id(&w, "id", PREFIX, in->id);
	json_end_object(&w);
	http_respond(req, 201, "application/json", &body);
}

/* ---- fed ---- */

static void finish(struct agentuity_input *in)
{
	struct http_request *req = in->req;
	input_free(in);
	if (req)
		agentuity_respond_success(req);
}

/* Writes what waits; true while there is more to come. */
static bool advance(struct agentuity_input *in)
{
	struct execution *x = in->execution;
	buf_consume(&in->waiting, execution_input_write(x, in->waiting.data, in->waiting.len));
	bool heard = execution_input_is_open(x) && !execution_input_is_deaf(x) &&
		     !execution_has_ended(x);
	if (heard && (in->waiting.len > 0 || !in->complete))
		return true;
	if (heard)
		execution_input_close(x);
	finish(in);
	return false;
}

static void room(void *arg)
{
	struct agentuity_input *in = arg;
	struct http_request *req = in->req;
	if (!req || !advance(in) || !in->paused || in->waiting.len > 0)
		return;
	in->paused = false;
	http_body_resume(req);
}

static void changed(void *arg)
{
	struct agentuity_input *in = arg;
	if (execution_has_ended(in->execution))
		advance(in);
}

static void body_data(void *arg, const char *data, size_t len)
{
	struct agentuity_input *in = arg;
	struct http_request *req = in->req;
	buf_append(&in->waiting, data, len);
	if (!advance(in) || in->waiting.len == 0)
		return;
	in->paused = true;
	http_body_pause(req);
}

static void body_end(void *arg)
{
	struct agentuity_input *in = arg;
	in->complete = true;
	advance(in);
}

static void body_aborted(void *arg)
{
	struct agentuity_input *in = arg;
	if (in->execution && !in->dialect->server->ops->stopping)
		execution_input_close(in->execution);
	input_free(in);
}

static void feed(struct agentuity_input *in)
{
	http_on_abort(in->req, body_aborted, in);
	http_body_stream(in->req, &(struct http_body_sink){body_data, body_end, body_aborted, in});
}

static void handle_feed(struct http_request *req)
{
	struct error e;
	struct agentuity_input *in =
		input_find(agentuity_of(req), tenant_of(req), http_param(req, "stream"));
	if (!in || in->req) {
		error_set(&e, in ? ERROR_IN_USE : ERROR_NOT_FOUND,
			in ? "the stream is being fed already" : "there is no such stream");
		http_respond_error(req, &e);
		return;
	}
	in->req = req;
	if (in->execution)
		feed(in);
	else
		http_on_abort(req, body_aborted, in);
}

int input_attach(struct agentuity *d, const char *tenant, const char *id, const char *execution,
	struct error *e)
{
	struct agentuity_input *in = input_find(d, tenant, id);
	struct execution *x = execution_find(d->server->box, tenant, execution);
	if (!in || in->execution || !x)
		return error_set_field(e, ERROR_INVALID_FIELD, "stream.stdin",
			"there is no such stream: it must be made first, and can be used once");
	in->execution = x;
	in->watcher = (struct execution_watcher){.changed = changed, .room = room, .arg = in};
	execution_watch(x, &in->watcher);
	if (in->req)
		feed(in);
	return 0;
}

void input_stop(struct agentuity *d)
{
	struct agentuity_input *in, *next;
	DL_FOREACH_SAFE (d->inputs, in, next)
		if (!in->req)
			input_free(in);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/input", handle_announce, 64 * 1024},
	{HTTP_PUT, "/input/{stream}", handle_feed, INT64_MAX, .streams_body = true},
};

const struct route_table agentuity_input_table = ROUTE_TABLE(routes);
