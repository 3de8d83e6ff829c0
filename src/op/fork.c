/*
 * Forks: made all or none, given their leases, then told. If the caller has left they are
 * destroyed: no client knows their ids.
 */
#include <string.h>

#include "box/disk/snapshot.h"
#include "op/op_core.h"
#include "op/snapshots.h"

struct fork_op {
	struct op op;
	struct op_fork request;
	struct fork *fork; /* NULL: they are made, or refused */
	int64_t frozen_us;
	unsigned leases; /* being set, and one until all were asked for */
	size_t count;
	char ids[FORKS_MAX][ID_SIZE];
};

static void fork_destroy_all(struct fork_op *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct sandbox *s = sandbox_find_any(f->op.ops->box, f->ids[i]);
		if (s)
			sandbox_destroy(s, NULL, NULL);
	}
}

static void fork_tell(struct fork_op *f)
{
	struct sandbox_view view;
	for (size_t i = 0; i < f->count; i++) {
		const struct sandbox *s = sandbox_find_any(f->op.ops->box, f->ids[i]);
		if (s)
			sandbox_view(s, &view);
		if (!op_emit(&f->op,
			    &(struct op_event){.kind = OP_ROW, .sandbox = s ? &view : NULL}))
			return;
	}
	op_done(&f->op, &(struct op_event){.kind = OP_DONE, .frozen_us = f->frozen_us});
}

/* A lease that could not be set is of a fork that is gone. */
static void fork_lease_set(void *arg, const struct error *e)
{
	struct fork_op *f = arg;
	(void)e;
	if (--f->leases > 0)
		return;
	if (f->op.gone)
		fork_destroy_all(f);
	if (op_awaited(&f->op))
		fork_tell(f);
}

static void fork_set_leases(struct fork_op *f)
{
	struct error e;
	struct sandbox_change change = {.settings = {.lease_ms = f->request.lease_ms}};
	sandbox_change_gives(&change, lease_ms);
	f->leases = 1;
	for (size_t i = 0; f->request.lease_ms && i < f->count; i++) {
		struct sandbox *s = sandbox_find_any(f->op.ops->box, f->ids[i]);
		f->leases++;
		if (!s || sandbox_update(s, &change, fork_lease_set, f, &e) < 0)
			f->leases--;
	}
	fork_lease_set(f, NULL);
}

static void fork_made(void *arg, const struct fork_result *result, const struct error *e)
{
	struct fork_op *f = arg;
	struct sandbox_view view;
	f->fork = NULL;
	if (!result) {
		if (op_awaited(&f->op))
			op_fail(&f->op, OP_ERROR, e);
		return;
	}
	f->frozen_us = result->frozen_us;
	for (size_t i = 0; i < result->count && i < FORKS_MAX; i++) {
		sandbox_view(result->sandboxes[i], &view);
		memcpy(f->ids[f->count++], view.id, ID_SIZE);
	}
	fork_set_leases(f);
}

static void fork_ask(struct op *op)
{
	struct fork_op *f = (struct fork_op *)op;
	struct error e = {0};
	struct sandbox *s = op_sandbox(op, &e);
	op_await(op);
	if (!s || sandbox_fork(s, f->request.count, fork_made, f, &f->fork, &e) < 0)
		fork_made(f, NULL, &e);
}

static void fork_release(struct op *op, enum op_end end)
{
	struct fork_op *f = (struct fork_op *)op;
	if (end != OP_ENDED && f->fork)
		sandbox_fork_withdraw(f->fork);
}

struct op *op_fork(const struct op_call *call, const struct op_fork *request)
{
	static const struct op_type type = {
		"sandbox.fork", true, true, .release = fork_release, .ask = fork_ask};
	struct sandbox *s;
	struct fork_op *f = (struct fork_op *)op_new(call, &type, sizeof *f, &s);
	f->request = *request;
	return &f->op;
}
