/* Opens and closes ports of a sandbox: for everyone, or for holders of a token. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "op/op_core.h"
#include "op/port.h"

struct grant_op {
	struct op op;
	struct op_port_grant request;
	struct port_grant grant; /* what was made */
};

/* Whether a grant that is there stays. */
static bool grant_stays(
	const struct grant_op *g, const struct port_grant *grant, int64_t now_ms, bool *found)
{
	const struct op_port_grant *r = &g->request;
	if (grant->id[0] && grant->expires_ms <= now_ms)
		return false;
	if (grant->port != r->port)
		return true;
	bool same = r->act == OP_PORT_REVOKE  ? strcmp(grant->id, r->id) == 0
		    : r->act == OP_PORT_TOKEN ? false
					      : !grant->id[0];
	*found |= same;
	return !same;
}

/* Writes the grants as they will be. */
static int grants_write(struct grant_op *g, const char *grants, struct buf *out, struct error *e)
{
	struct port_grant grant;
	bool found = false;
	unsigned count = 1;
	int64_t now_ms = clock_wall_ms();
	for (const char *at = grants; port_grant_next(&at, &grant);) {
		if (!grant_stays(g, &grant, now_ms, &found))
			continue;
		port_grant_append(out, &grant);
		count++;
	}
	if (g->request.act == OP_PORT_REVOKE && !found)
		return error_set(e, ERROR_NOT_FOUND, "the port has no such token");
	if (g->request.act == OP_PORT_REVOKE || g->request.act == OP_PORT_CLOSE)
		return 0;
	if (count > PORT_GRANTS_MAX)
		return error_set(e, ERROR_QUOTA_EXCEEDED,
			"the sandbox has %d open ports and tokens, the most that is allowed",
			PORT_GRANTS_MAX);
	g->grant = (struct port_grant){.port = g->request.port};
	if (g->request.act == OP_PORT_TOKEN) {
		id_generate(g->grant.id);
		g->grant.expires_ms = now_ms + g->request.life_ms;
	}
	port_grant_append(out, &g->grant);
	return 0;
}

static void grants_stored(void *arg, const struct error *e)
{
	struct grant_op *g = arg;
	if (!op_awaited(&g->op))
		return;
	if (e)
		op_fail(&g->op, OP_ERROR, e);
	else
		op_done(&g->op, &(struct op_event){.kind = OP_DONE, .grant = &g->grant});
}

static void grants_ask(struct op *op)
{
	struct grant_op *g = (struct grant_op *)op;
	struct sandbox_change change = {0};
	struct sandbox_view view;
	struct error e;
	autobuf text = {0};
	struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	sandbox_view(s, &view);
	if (grants_write(g, view.port_grants, &text, &e) < 0) {
		op_fail(op, OP_ERROR, &e);
		return;
	}
	buf_append_char(&text, '\0');
	change.port_grants = text.data;
	sandbox_change_gives(&change, port_grants);
	op_await(op);
	if (sandbox_update(s, &change, grants_stored, g, &e) < 0)
		grants_stored(g, &e);
}

struct op *op_port_grant(const struct op_call *call, const struct op_port_grant *request)
{
	static const struct op_type type = {
		"port.grant", .changes = true, .outlives_caller = true, .ask = grants_ask};
	struct sandbox *s;
	struct grant_op *g = (struct grant_op *)op_new(call, &type, sizeof *g, &s);
	g->request = *request;
	return &g->op;
}
