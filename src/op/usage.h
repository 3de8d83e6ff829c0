/* Usage of sandboxes, limits of a tenant, counters of the server. */
#pragma once

#include "op/op.h"

/*
 * OP_ROW with `used`, then OP_DONE. With `measures` the kernel is asked for what the sandbox uses
 * now. With op_call.takes_ended one that has ended is told, too, without `now` and samples.
 */
struct op_usage {
	bool measures;
};
struct op *op_usage(const struct op_call *call, const struct op_usage *request);

/* OP_ROW with `used` for each of the caller's sandboxes among these that lives. */
struct op_usages {
	const char *const *ids;
	size_t count;
};
struct op *op_usages(const struct op_call *call, const struct op_usages *request);

/* OP_DONE with `quota`: of the caller. */
struct op *op_quota(const struct op_call *call);
/* OP_DONE with `counters`. */
struct op *op_counters(const struct op_call *call);
