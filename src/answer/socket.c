/*
 * Answers that are WebSockets. The socket tells when everything was taken (`writable`): until then
 * the operation is paused, once it has said that there is nothing more for now (OP_IDLE) or much is
 * queued.
 */
#include <strings.h>

#include "answer/answer_core.h"
#include "base/cleanup.h"
#include "http/websocket.h"

#define QUEUE_MAX   (256u * 1024)
#define MESSAGE_MAX (128u * 1024) /* of the client's; a longer one ends the socket */

static void socket_writable(void *arg)
{
	struct answer *a = arg;
	a->socket_sent = false;
	if (!a->paused)
		return;
	a->paused = false;
	op_resume(a->op);
}

static void socket_closed(void *arg, unsigned code, const char *reason)
{
	(void)code;
	(void)reason;
	answer_gone(arg);
}

static void socket_message(void *arg, enum websocket_kind kind, const char *data, size_t len)
{
	struct answer *a = arg;
	struct error e = {0};
	answer_hold(a);
	int r = a->socket_form->message(a, kind == WEBSOCKET_TEXT, data, len, &e);
	if (!answer_let_go(a))
		return;
	if (r < 0)
		a->socket_form->refused(a, &e);
	if (op_room(a->op) == 0 && !a->body_paused) {
		a->body_paused = true;
		websocket_pause(a->socket);
	}
}

static int socket_open(struct answer *a)
{
	static const struct websocket_events events = {
		.message = socket_message,
		.writable = socket_writable,
		.closed = socket_closed,
		.message_max = MESSAGE_MAX,
	};
	http_on_abort(a->req, NULL, NULL);
	if (a->form->head)
		a->form->head(a);
	return http_upgrade_websocket(a->req, &events, a, &a->socket);
}

static void socket_close(struct answer *a, unsigned code, const char *reason)
{
	struct websocket *socket = a->socket;
	a->op = NULL;
	websocket_close(socket, code, reason);
	answer_free(a);
}

static void socket_fail(struct answer *a, const struct error *why, const struct op_event *event)
{
	struct error e = *why;
	if (!a->socket) {
		answer_fail(a, why, event);
		return;
	}
	a->op = NULL;
	enum answer_failure how = a->form->fail ? a->form->fail(a, &e, event) : ANSWER_ERROR;
	socket_close(a, WEBSOCKET_INTERNAL, how == ANSWER_ERROR ? e.message : NULL);
}

static enum op_verdict socket_flow(struct answer *a, const struct op_event *event)
{
	bool full = websocket_is_full(a->socket, QUEUE_MAX);
	a->paused = full || (event->kind == OP_IDLE && a->socket_sent);
	return a->paused ? OP_PAUSE : OP_GO_ON;
}

static enum op_verdict socket_input(struct answer *a, const struct op_event *event)
{
	if (event->kind == OP_REFUSED)
		a->socket_form->refused(a, event->error);
	if (event->kind == OP_ROOM && a->body_paused) {
		a->body_paused = false;
		websocket_resume(a->socket);
	}
	return OP_GO_ON;
}

enum op_verdict answer_socket_event(struct answer *a, const struct op_event *event)
{
	struct error e = {0};
	if (event->kind == OP_FAILED) {
		socket_fail(a, event->error, event);
		return OP_GO_ON;
	}
	if (!a->socket && socket_open(a) < 0) {
		a->op = NULL;
		answer_free(a);
		return OP_STOP;
	}
	if (event->kind == OP_ROOM || event->kind == OP_REFUSED)
		return socket_input(a, event);
	if (event->kind != OP_IDLE && a->form->put(a, event, &e) < 0) {
		socket_fail(a, &e, NULL);
		return OP_STOP;
	}
	if (event->kind != OP_DONE)
		return socket_flow(a, event);
	socket_close(a, WEBSOCKET_NORMAL, NULL);
	return OP_GO_ON;
}

/* ---- for dialects ---- */

void answer_send_text(struct answer *a)
{
	a->socket_sent = true;
	if (!a->out.failed)
		websocket_send(a->socket, WEBSOCKET_TEXT, a->out.data, a->out.len);
	a->out.len = 0;
}

void answer_send_binary(struct answer *a, const struct buf *bytes)
{
	a->socket_sent = true;
	websocket_send(a->socket, WEBSOCKET_BINARY, bytes->data, bytes->len);
}

bool answer_wants_socket(const struct http_request *req)
{
	const char *upgrade = http_header(req, "upgrade");
	return upgrade && strcasecmp(upgrade, "websocket") == 0;
}

void answer_run_socket(struct answer *a, const struct answer_socket *socket)
{
	a->socket_form = socket;
	answer_run(a);
}
