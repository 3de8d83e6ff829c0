/* Answers that a port of the sandbox gives. */
#include "answer/answer_core.h"
#include "http/pass.h"
#include "op/port.h"

static void pass_traffic(void *arg)
{
	const struct answer *a = arg;
	op_port_note_traffic(a->op);
}

static void pass_answered(void *arg)
{
	const struct answer *a = arg;
	op_port_note_answer(a->op);
}

/* The spare connection was closed: the request goes by another one. */
static void pass_stale(void *arg)
{
	struct answer *a = arg;
	http_on_abort(a->req, answer_gone, a);
	op_port_again(a->op);
}

static void pass_ended(void *arg, uv_tcp_t *left)
{
	struct answer *a = arg;
	if (left)
		op_port_put_spare(a->op, left);
	answer_gone(a);
}

enum op_verdict answer_pass_event(struct answer *a, const struct op_event *event)
{
	if (event->kind == OP_FAILED) {
		answer_fail(a, event->error, event);
		return OP_GO_ON;
	}
	/* The form's texts live in `own`, and the operation goes on until the pass has ended. */
	const char *host = event->socket.host ? event->socket.host : http_header(a->req, "host");
	http_pass(a->req, event->socket.stream,
		&(struct http_pass_form){.tunnel = a->pass->tunnel,
			.target = a->pass->target,
			.host = host ? host : "localhost",
			.spare = event->socket.spare,
			.request_field = a->pass->request_field,
			.answer_field = a->pass->answer_field,
			.answered = pass_answered,
			.traffic = pass_traffic,
			.stale = pass_stale,
			.ended = pass_ended,
			.arg = a});
	return OP_PAUSE;
}

void answer_run_pass(struct answer *a, const struct answer_pass *pass)
{
	a->pass = pass;
	answer_run(a);
}
