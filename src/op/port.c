#include "op/port.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "box/port/port.h"
#include "op/op_core.h"

#define NOTE_US 1000000 /* how often traffic is noted at most */

struct port_op {
	struct op op;
	struct op_port request;
	bool begun;
	struct port_call *call; /* while it is being connected */
	char *holder;           /* the tenant that has the connection's descriptor; NULL: none */
	bool waits;             /* it has a connection and no answer */
	int64_t noted_us;
};

/* Puts the port into the setting. */
static void port_op_name_host(const char *setting, unsigned port, struct buf *out)
{
	static const char variable[] = "${PORT}";
	char digits[12];
	snprintf(digits, sizeof digits, "%u", port);
	for (const char *p = setting; *p;) {
		const char *at = strstr(p, variable);
		buf_append(out, p, at ? (size_t)(at - p) : strlen(p));
		if (at)
			buf_append_str(out, digits);
		p = at ? at + sizeof variable - 1 : p + strlen(p);
	}
	buf_append_char(out, '\0');
}

static void port_op_wait(struct port_op *p, bool waits)
{
	struct error e;
	struct sandbox *s = op_sandbox(&p->op, &e);
	if (s && waits && !p->waits)
		port_begin_waiting(s);
	if (s && !waits && p->waits)
		port_end_waiting(s);
	p->waits = waits;
}

static void port_op_tell(struct port_op *p, uv_tcp_t *stream, bool spare)
{
	struct error e;
	struct sandbox_view view = {0};
	autobuf host = {0};
	const struct sandbox *s = op_sandbox(&p->op, &e);
	if (s)
		sandbox_view(s, &view);
	if (s && view.preview_host[0])
		port_op_name_host(view.preview_host, p->request.port, &host);
	port_op_wait(p, true);
	op_emit(&p->op,
		&(struct op_event){.kind = OP_SOCKET, .socket = {stream, spare, host.data}});
}

static void port_op_connected(void *arg, uv_tcp_t *stream, const struct error *e)
{
	struct port_op *p = arg;
	p->call = NULL;
	if (!stream)
		op_fail(&p->op, OP_ERROR, e);
	else
		port_op_tell(p, stream, false);
}

static void port_op_connect(struct port_op *p, struct sandbox *s)
{
	struct port_try found;
	struct error e;
	if (port_connect(s, p->request.port, port_op_connected, p, &found, &e) < 0)
		op_fail(&p->op, OP_ERROR, &e);
	else if (found.stream)
		port_op_tell(p, found.stream, false);
	else
		p->call = found.call;
}

/* Returns 0 if the caller, who has shown no key, may have the port. */
static int port_op_admit(const struct port_op *p, const struct sandbox *s, struct error *e)
{
	const struct op_port *r = &p->request;
	struct sandbox_view view;
	if (p->op.tenant)
		return 0;
	sandbox_view(s, &view);
	if (view.previews == PREVIEWS_PUBLIC ||
		(view.previews == PREVIEWS_TOKEN && r->holds_traffic_token) ||
		port_grants_open(view.port_grants, r->port, r->token, clock_wall_ms()))
		return 0;
	if (view.previews == PREVIEWS_TOKEN)
		return error_set(e, ERROR_PERMISSION_DENIED,
			"Sandbox is secured with traffic access token. "
			"Token header 'e2b-traffic-access-token' is missing");
	return error_set(
		e, ERROR_UNAUTHORIZED, "this preview needs an API key, or a token of the port");
}

static void port_op_begin(struct port_op *p, struct sandbox *s)
{
	struct error e;
	uv_tcp_t *spare = p->request.repeatable ? port_take_spare(s, p->request.port) : NULL;
	p->holder = port_hold(s, &e);
	if (!p->holder) {
		port_close(spare);
		op_fail(&p->op, OP_ERROR, &e);
	} else if (spare) {
		port_op_tell(p, spare, true);
	} else {
		port_op_connect(p, s);
	}
}

static void port_op_resume(struct op *op)
{
	struct port_op *p = (struct port_op *)op;
	struct error e;
	if (p->begun)
		return;
	p->begun = true;
	struct sandbox *s = op_sandbox(op, &e);
	if (!s)
		op_fail(op, OP_NO_SANDBOX, &e);
	else if (port_op_admit(p, s, &e) < 0)
		op_fail(op, OP_DENIED, &e);
	else
		port_op_begin(p, s);
}

static void port_op_release(struct op *op, enum op_end end)
{
	struct port_op *p = (struct port_op *)op;
	(void)end;
	port_op_wait(p, false);
	if (p->call)
		port_cancel(take_ptr(p->call));
	if (p->holder)
		port_let_go(op->ops->box, p->holder);
	free(take_ptr(p->holder));
}

struct op *op_port(const struct op_call *call, const struct op_port *request)
{
	static const struct op_type type = {
		"port.connect", .resume = port_op_resume, .release = port_op_release};
	struct sandbox *s;
	struct port_op *p = (struct port_op *)op_new(call, &type, sizeof *p, &s);
	p->request = *request;
	return &p->op;
}

void op_port_again(struct op *op)
{
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	op->paused = false;
	port_op_wait((struct port_op *)op, false);
	if (s)
		port_op_connect((struct port_op *)op, s);
	else
		op_fail(op, OP_NO_SANDBOX, &e);
}

void op_port_note_answer(struct op *op)
{
	port_op_wait((struct port_op *)op, false);
}

void op_port_put_spare(struct op *op, uv_tcp_t *stream)
{
	const struct port_op *p = (const struct port_op *)op;
	struct error e;
	struct sandbox *s = op_sandbox(op, &e);
	if (s)
		port_put_spare(s, p->request.port, stream);
	else
		port_close(stream);
}

void op_port_note_traffic(struct op *op)
{
	struct port_op *p = (struct port_op *)op;
	struct error e;
	int64_t now = clock_monotonic_us();
	if (now - p->noted_us < NOTE_US)
		return;
	p->noted_us = now;
	struct sandbox *s = op_sandbox(op, &e);
	if (s)
		port_note_traffic(s);
}
