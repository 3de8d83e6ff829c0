/* Answers that a port of the sandbox gives. */
#include "answer/answer_core.h"
#include "http/pass.h"
#include "op/port.h"

static void pass_traffic(void *arg)
{
	const struct answer *a = arg;
	op_port_note_traffic(a->op);
}

enum op_verdict answer_pass_event(struct answer *a, const struct op_event *event)
{
	if (event->kind == OP_FAILED) {
		answer_fail(a, event->error, event);
		return OP_GO_ON;
	}
	/* What the form says lives in `own`, and the operation goes on until the pass has ended. */
	const char *host = event->socket.host ? event->socket.host : http_header(a->req, "host");
	http_pass(a->req, event->socket.fd,
		&(struct http_pass_form){.tunnel = a->pass->tunnel,
			.target = a->pass->target,
			.host = host ? host : "localhost",
			.request_field = a->pass->request_field,
			.answer_field = a->pass->answer_field,
			.traffic = pass_traffic,
			.ended = answer_gone,
			.arg = a});
	return OP_PAUSE;
}

void answer_run_pass(struct answer *a, const struct answer_pass *pass)
{
	a->pass = pass;
	answer_run(a);
}
