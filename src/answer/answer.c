#include "answer/answer_core.h"

#include <stdlib.h>
#include <string.h>

#include "answer/dialect.h"
#include "base/cleanup.h"
#include "base/mem.h"
#include "op/admission.h"

#define SMALL (64u * 1024)

void answer_free(struct answer *a)
{
	a->over = true;
	if (a->held > 0)
		return;
	if (a->form->finish)
		a->form->finish(a);
	if (a->body && a->body->finish)
		a->body->finish(a->body_arg);
	scratch_finish(&a->call.memory);
	buf_finish(&a->out);
	free(a);
}

void answer_hold(struct answer *a)
{
	a->held++;
}

bool answer_let_go(struct answer *a)
{
	a->held--;
	if (!a->over)
		return true;
	answer_free(a);
	return false;
}

/* Handles a client that has gone. This is the only place that does. */
void answer_gone(void *arg)
{
	struct answer *a = arg;
	if (a->op)
		op_leave(a->op);
	answer_free(a);
}

/* ---- out ---- */

static void answer_send(struct answer *a)
{
	struct http_request *req = a->req;
	bool ended = a->ended, cut = a->cut || a->out.failed;
	struct buf out = buf_take(&a->out);
	a->hungry = false;
	if (ended)
		answer_free(a);
	if (cut) {
		buf_finish(&out);
		http_stream_abort(req);
		return;
	}
	if (out.len > 0)
		http_stream_write(req, &out);
	if (ended)
		http_stream_end(req);
}

static void answer_proceed(void *arg)
{
	struct answer *a = arg;
	a->hungry = true;
	if (a->ended) {
		answer_send(a);
		return;
	}
	if (a->form->pace == ANSWER_BULK && (a->paused || a->out.len >= SMALL))
		answer_send(a);
	if (!a->paused)
		return;
	a->paused = false;
	op_resume(a->op);
}

static void answer_begin_stream(struct answer *a)
{
	const struct http_generator generator = {answer_proceed, answer_gone, a};
	a->streaming = true;
	if (a->form->head)
		a->form->head(a);
	if (a->length == ANSWER_UNKNOWN)
		http_stream_begin(a->req, a->status, a->type, &generator);
	else
		http_stream_begin_sized(a->req, a->status, a->type, a->length, &generator);
	if (a->keepalive.len > 0)
		http_stream_keepalive(a->req, a->keepalive.data, a->keepalive.len, a->keepalive.ms);
}

static void answer_respond(struct answer *a)
{
	struct http_request *req = a->req;
	struct buf out = buf_take(&a->out);
	int status = a->status;
	const char *type = a->type;
	answer_free(a);
	http_respond(req, status, type, &out);
}

/* The operation has told its last; what is in `out` goes now, or as soon as the client takes it. */
static void answer_end(struct answer *a)
{
	bool head_only = http_method(a->req) == HTTP_HEAD && a->length != ANSWER_UNKNOWN;
	a->op = NULL;
	a->ended = true;
	if (!a->streaming && (head_only || a->form->pace == ANSWER_LIVE))
		answer_begin_stream(a);
	if (!a->streaming) {
		if (a->form->head)
			a->form->head(a);
		answer_respond(a);
	} else if (a->hungry) {
		answer_send(a);
	}
}

void answer_fail(struct answer *a, const struct error *why, const struct op_event *event)
{
	struct error e = *why;
	struct http_request *req = a->req;
	a->op = NULL;
	if (!a->streaming)
		a->out.len = 0;
	enum answer_failure how = a->form->fail ? a->form->fail(a, &e, event) : ANSWER_ERROR;
	if (how == ANSWER_RETRY) {
		op_resume(a->op);
	} else if (how == ANSWER_PUT && a->streaming) {
		answer_end(a);
	} else if (how == ANSWER_PUT) {
		answer_respond(a);
	} else if (a->streaming) {
		a->ended = a->cut = true;
		if (a->hungry)
			answer_send(a);
	} else {
		answer_free(a);
		http_respond_error(req, &e);
	}
}

/* ---- events ---- */

static enum op_verdict answer_flow(struct answer *a, const struct op_event *event)
{
	bool live = a->form->pace == ANSWER_LIVE;
	bool large = a->length == ANSWER_UNKNOWN ? a->out.len >= SMALL : a->length > SMALL;
	if (a->form->pace == ANSWER_WHOLE)
		return OP_GO_ON;
	if (!a->streaming && (live || large))
		answer_begin_stream(a);
	/* A piece of a file goes as it is, without being copied together with the next. */
	bool full = a->out.len >= (event->kind == OP_DATA && a->streaming ? 1 : SMALL);
	bool ready = live ? event->kind == OP_IDLE && a->out.len > 0 : full;
	if (ready && a->hungry) {
		answer_send(a);
		full = false;
	}
	a->paused = live ? !a->hungry : full;
	return a->paused ? OP_PAUSE : OP_GO_ON;
}

static void resume_body(struct answer *a)
{
	if (a->body_paused) {
		a->body_paused = false;
		http_body_resume(a->req);
	}
}

static enum op_verdict answer_event(void *arg, const struct op_event *event)
{
	struct answer *a = arg;
	struct error e = {0};
	if (a->socket_form)
		return answer_socket_event(a, event);
	if (a->pass)
		return answer_pass_event(a, event);
	if (event->kind == OP_ROOM) {
		resume_body(a);
		return OP_GO_ON;
	}
	if (event->kind == OP_FAILED) {
		answer_fail(a, event->error, event);
		return OP_GO_ON;
	}
	const struct op *op = a->op;
	if (event->kind != OP_IDLE && a->form->put && a->form->put(a, event, &e) < 0) {
		answer_fail(a, &e, NULL);
		return OP_STOP;
	}
	if (event->kind != OP_DONE)
		return answer_flow(a, event);
	if (a->op != op)
		op_resume(a->op);
	else
		answer_end(a);
	return OP_GO_ON;
}

void answer_put_bytes(struct answer *a, struct buf *bytes)
{
	if (a->out.len == 0) {
		buf_finish(&a->out);
		a->out = buf_take(bytes);
	} else {
		buf_append(&a->out, bytes->data, bytes->len);
	}
}

void answer_keep_alive(struct answer *a, const char *data, size_t len, uint64_t ms)
{
	a->keepalive.data = data;
	a->keepalive.len = len;
	a->keepalive.ms = ms;
}

/* ---- in ---- */

static void body_fail(struct answer *a, const struct error *e)
{
	op_leave(a->op);
	answer_fail(a, e, NULL);
}

static void answer_body_data(void *arg, const char *bytes, size_t len)
{
	struct answer *a = arg;
	struct error e = {0};
	answer_hold(a);
	ptrdiff_t taken = a->body->data(a, bytes, len, &e);
	if (!answer_let_go(a))
		return;
	if (taken < 0) {
		body_fail(a, &e);
		return;
	}
	if (op_room(a->op) == 0) {
		a->body_paused = true;
		http_body_pause(a->req);
	}
	if ((size_t)taken < len)
		http_body_unread(a->req, len - (size_t)taken);
}

static void answer_body_end(void *arg)
{
	struct answer *a = arg;
	struct error e = {0};
	answer_hold(a);
	int r = a->body->end(a, &e);
	if (!answer_let_go(a))
		return;
	if (r < 0)
		body_fail(a, &e);
	else
		op_put(a->op, &(struct op_item){OP_ITEM_END});
}

static ptrdiff_t file_data(struct answer *a, const char *bytes, size_t len, struct error *e)
{
	(void)e;
	op_put(a->op, &(struct op_item){OP_ITEM_DATA, .bytes = {bytes, len}});
	return (ptrdiff_t)len;
}

static int file_end(struct answer *a, struct error *e)
{
	(void)e;
	op_put(a->op, &(struct op_item){OP_ITEM_FILE_END});
	return 0;
}

static int bytes_end(struct answer *a, struct error *e)
{
	(void)a;
	(void)e;
	return 0;
}

const struct answer_body answer_body_file = {file_data, file_end};
const struct answer_body answer_body_bytes = {file_data, bytes_end};

/* ---- the begin ---- */

struct answer *answer_new(struct http_request *req, const struct answer_form *form)
{
	struct answer *a = mem_new(sizeof *a + form->own_size);
	a->req = req;
	a->form = form;
	a->own = a + 1;
	a->status = 200;
	a->type = form->type;
	a->length = ANSWER_UNKNOWN;
	a->call.ops = server_of(req)->ops;
	a->call.api = service_of(req)->dialect->name;
	a->call.tenant = tenant_of(req);
	a->call.request = http_request_id(req);
	a->call.event = answer_event;
	a->call.arg = a;
	return a;
}

void answer_name_sandbox(struct answer *a, const char *text)
{
	const char *tenant = a->call.tenant, *owner = text ? op_tenant_of(a->call.ops, text) : NULL;
	char *id = NULL;
	if (text && tenant && (!owner || strcmp(owner, tenant) != 0))
		id = http_alloc(a->req, ID_SIZE);
	a->call.sandbox = id && op_find_named(a->call.ops, tenant, text, id) ? id : text;
}

void answer_run(struct answer *a)
{
	a->call.memory = (struct scratch){0}; /* the operation's */
	http_on_abort(a->req, answer_gone, a);
	op_resume(a->op);
}

void answer_run_with_body(struct answer *a, const struct answer_body *body)
{
	a->body = body;
	http_body_stream(a->req,
		&(struct http_body_sink){answer_body_data, answer_body_end, answer_gone, a});
	answer_run(a);
}

void answer_refuse(struct answer *a, const struct error *e)
{
	a->op = op_refuse(&a->call, e);
	answer_run(a);
}
