/* Wakes a sleeping sandbox for the operation that needs it. */
#include "op/life.h"
#include "op/op_core.h"

static void wake_ask(struct op *op)
{
	struct error e;
	struct sandbox_view view;
	struct sandbox *s = op_sandbox(op, &e);
	if (!s) {
		op_fail(op, OP_NO_SANDBOX, &e);
		return;
	}
	sandbox_view(s, &view);
	if (view.status == SANDBOX_IDLE || view.status == SANDBOX_RUNNING ||
		view.status == SANDBOX_CREATING) {
		op_done(op, &(struct op_event){.kind = OP_DONE, .sandbox = &view});
		return;
	}
	op_await(op);
	sandbox_resume(s, true, op_called_back, op);
}

struct op *op_wake(const struct op_call *call)
{
	static const struct op_type type = {"wake", true, true, .ask = wake_ask};
	return op_ask(call, &type, NULL, 0);
}
