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
#include "base/mem.h"
#include "op/process.h"

#define ANNOUNCED_MAX 100 /* of a tenant */
#define ANNOUNCED_MS  (10 * 60 * 1000)
#define PREFIX        "stream_"

struct agentuity_input {
	struct agentuity *dialect;
	char id[ID_SIZE];
	char *tenant;
	int64_t created_ms;
	char execution[ID_SIZE]; /* whose stdin it is; "": not known yet */
	struct answer *feeder;   /* of the request that feeds it; NULL: none yet */
	struct op *wait;         /* for the execution's end, while nobody feeds it; or NULL */
	struct agentuity_input *prev, *next;
};

static void input_free(struct agentuity_input *in)
{
	DL_DELETE(in->dialect->inputs, in);
	if (in->wait)
		op_leave(in->wait);
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
		if (!in->feeder && !in->execution[0] && now - in->created_ms > ANNOUNCED_MS)
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
	struct agentuity_input *in = mem_new(sizeof *in);
	in->tenant = mem_copy_text(tenant_of(req));
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

struct input_feed {
	struct agentuity_input *input;
};

static ptrdiff_t input_feed_data(struct answer *a, const char *bytes, size_t len, struct error *e)
{
	(void)e;
	op_put(a->op, &(struct op_item){OP_ITEM_DATA, .bytes = {bytes, len}});
	return (ptrdiff_t)len;
}

static int input_feed_end(struct answer *a, struct error *e)
{
	(void)a;
	(void)e;
	return 0;
}

/* What the command does not read any more is no error of the client's. */
static enum answer_failure input_feed_fail(
	struct answer *a, struct error *e, const struct op_event *event)
{
	if (e->code != ERROR_STDIN_CLOSED && e->code != ERROR_NOT_RUNNING &&
		!(event && event->reason == OP_NO_EXECUTION))
		return ANSWER_ERROR;
	agentuity_put_success(a, &(struct op_event){.kind = OP_DONE}, e);
	return ANSWER_PUT;
}

static void input_feed_finish(struct answer *a)
{
	input_free(((struct input_feed *)a->own)->input);
}

static void input_feed(struct http_request *req, struct agentuity_input *in)
{
	static const struct answer_form form = {.type = "application/json",
		.pace = ANSWER_WHOLE,
		.own_size = sizeof(struct input_feed),
		.put = agentuity_put_success,
		.fail = input_feed_fail,
		.finish = input_feed_finish};
	static const struct answer_body body = {input_feed_data, input_feed_end};
	struct answer *a = answer_new(req, &form);
	((struct input_feed *)a->own)->input = in;
	in->feeder = a;
	/* Now, since an end of the command must not make one of its watchers end another. */
	if (in->wait)
		op_leave(take_ptr(in->wait));
	a->op = op_input(&a->call, &(struct op_input){.process.text = in->execution,
					   .named_later = !in->execution[0],
					   .closes = true,
					   .closes_if_left = true,
					   .while_read = true});
	answer_run_with_body(a, &body);
}

static void handle_feed(struct http_request *req)
{
	struct error e;
	struct agentuity_input *in =
		input_find(agentuity_of(req), tenant_of(req), http_param(req, "stream"));
	if (in && !in->feeder) {
		input_feed(req, in);
		return;
	}
	error_set(&e, in ? ERROR_IN_USE : ERROR_NOT_FOUND,
		in ? "the stream is being fed already" : "there is no such stream");
	http_respond_error(req, &e);
}

/* ---- a command's ---- */

static enum op_verdict input_waited(void *arg, const struct op_event *event)
{
	struct agentuity_input *in = arg;
	if (event->kind != OP_DONE && event->kind != OP_FAILED)
		return OP_GO_ON;
	in->wait = NULL;
	if (!in->feeder)
		input_free(in);
	return OP_GO_ON;
}

/* It is forgotten when the command has ended and nobody has fed it. */
static void input_wait(struct agentuity_input *in)
{
	const struct op_call call = {.ops = in->dialect->server->ops,
		.api = "agentuity",
		.tenant = in->tenant,
		.event = input_waited,
		.arg = in};
	in->wait = op_process(&call,
		&(struct op_process){.process.text = in->execution, .wait_ms = OP_WAIT_FOREVER});
	op_resume(in->wait);
}

int input_attach(struct agentuity *d, const char *tenant, const char *id, const char *execution,
	struct error *e)
{
	struct agentuity_input *in = input_find(d, tenant, id);
	if (!in || in->execution[0])
		return error_set_field(e, ERROR_INVALID_FIELD, "stream.stdin",
			"there is no such stream: it must be made first, and can be used once");
	memcpy(in->execution, execution, ID_SIZE);
	if (in->feeder)
		op_put(in->feeder->op,
			&(struct op_item){OP_ITEM_PROCESS, .process.text = in->execution});
	else
		input_wait(in);
	return 0;
}

void input_stop(struct agentuity *d)
{
	struct agentuity_input *in, *next;
	DL_FOREACH_SAFE (d->inputs, in, next)
		if (!in->feeder)
			input_free(in);
}

static const struct http_route routes[] = {
	{HTTP_POST, "/input", handle_announce, 64 * 1024},
	{HTTP_PUT, "/input/{stream}", handle_feed, INT64_MAX, .streams_body = true},
};

const struct route_table agentuity_input_table = ROUTE_TABLE(routes);
