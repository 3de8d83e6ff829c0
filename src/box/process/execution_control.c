/* Control of a running execution: signals, the size of its terminal, its usage. */
#include <utlist.h>

#include "box/process/execution_core.h"
#include "box/sandbox/object.h"
#include "box/sandbox/pause.h"

static void execution_control_tell(
	struct execution *x, enum frame_type type, unsigned scope, uint64_t number)
{
	struct error ignored;
	if (execution_has_ended(x))
		return;
	/* If it cannot be woken now, this waits until it is. */
	sandbox_wake(x->sandbox, &ignored);
	execution_send(x, type, scope, number, NULL, 0);
	execution_flush(x);
}

void execution_signal(struct execution *x, int number, bool tree)
{
	execution_control_tell(x, FRAME_SIGNAL, tree ? FRAME_TREE : FRAME_MAIN, (uint64_t)number);
}

void execution_stop(struct execution *x, int64_t grace_ms)
{
	execution_control_tell(x, FRAME_STOP, 0, (uint64_t)(grace_ms > 0 ? grace_ms : 0));
}

void execution_cancel(struct execution *x)
{
	execution_control_tell(x, FRAME_KILL, 0, 0);
}

bool execution_resize(struct execution *x, unsigned rows, unsigned columns)
{
	if (!x->terminal || rows == 0 || columns == 0 || rows > FRAME_MAX_SIDE ||
		columns > FRAME_MAX_SIDE)
		return false;
	execution_control_tell(x, FRAME_RESIZE, 0, (uint64_t)rows << 16 | columns);
	return true;
}

void execution_inspect(struct execution *x, struct execution_inspection *i)
{
	DL_APPEND(x->inspections, i);
	execution_control_tell(x, FRAME_INSPECT, 0, 0);
}

void execution_uninspect(struct execution *x, struct execution_inspection *i)
{
	DL_DELETE(x->inspections, i);
}

void execution_inspected(struct execution *x, const struct execution_usage *usage)
{
	struct execution_inspection *i, *next;
	DL_FOREACH_SAFE (x->inspections, i, next) {
		DL_DELETE(x->inspections, i);
		i->done(i->arg, usage);
	}
}
