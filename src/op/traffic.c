/*
 * Destinations of a sandbox, once or for as long as it lives. Who follows is told rows as they are
 * when he takes them: one that changes often costs a slow caller nothing.
 */
#include "op/traffic.h"

#include "box/sandbox/traffic.h"
#include "op/op_core.h"

/* ---- once ---- */

static void destinations_ask(struct op *op)
{
	struct error e;
	const struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	for (const struct traffic_row *row = traffic_first(s); row; row = traffic_next(row))
		if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .record = traffic_view(row)}))
			return;
	op_done(op, &(struct op_event){.kind = OP_DONE});
}

struct op *op_destinations(const struct op_call *call)
{
	static const struct op_type type = {
		"network.destinations", .ask = destinations_ask, .early = true};
	return op_ask(call, &type, NULL, 0);
}

/* ---- for as long as it lives ---- */

struct follow_op {
	struct op op;
	struct traffic_watcher watcher;
	bool watching;
	uint64_t version; /* of the row that was told last */
};

static void follow_tell(struct follow_op *f)
{
	struct op *op = &f->op;
	struct error e;
	const struct sandbox *s = op_sandbox(op, &e);
	const struct traffic_row *row;
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	while (!op->paused && (row = traffic_after(s, &f->version)))
		if (!op_emit(op, &(struct op_event){.kind = OP_ROW, .record = traffic_view(row)}))
			return;
	if (!op->paused)
		op_emit(op, &(struct op_event){.kind = OP_IDLE});
}

static void follow_changed(void *arg)
{
	struct follow_op *f = arg;
	if (!f->op.paused)
		follow_tell(f);
}

static void follow_gone(void *arg)
{
	struct follow_op *f = arg;
	op_done(&f->op, &(struct op_event){.kind = OP_DONE});
}

static void follow_resume(struct op *op)
{
	struct follow_op *f = (struct follow_op *)op;
	struct error e;
	if (!f->watching) {
		struct sandbox *s = op_sandbox(op, &e);
		if (!s) {
			op_fail(op, OP_NO_SANDBOX, &e);
			return;
		}
		f->watching = true;
		f->watcher = (struct traffic_watcher){
			.changed = follow_changed, .gone = follow_gone, .arg = f};
		traffic_watch(s, &f->watcher);
		if (!op_emit(op, &(struct op_event){.kind = OP_READY}) || op->paused)
			return;
	}
	follow_tell(f);
}

static void follow_release(struct op *op, enum op_end end)
{
	struct follow_op *f = (struct follow_op *)op;
	(void)end;
	if (f->watching)
		traffic_unwatch(&f->watcher);
}

struct op *op_destinations_follow(const struct op_call *call)
{
	static const struct op_type type = {"network.destinations.follow", .resume = follow_resume,
		.release = follow_release, .early = true};
	struct sandbox *s;
	struct op *op = op_new(call, &type, sizeof(struct follow_op), &s);
	op_has_begun(op);
	return op;
}
