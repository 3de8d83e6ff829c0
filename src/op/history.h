/* The history of a sandbox, also after its end: set op_call.takes_ended. */
#pragma once

#include "op/op.h"

/*
 * OP_ROW for each event, then OP_DONE. A history that is followed goes on: OP_READY first,
 * OP_IDLE when there is nothing new, OP_DONE behind the sandbox's last event.
 */
struct op_history {
	uint64_t after; /* begins behind this number, or below it; 0: with the first, or the newest
			 */
	unsigned limit; /* 0: all */
	bool backwards;
	bool follow; /* forward only, without a limit */
};
struct op *op_history(const struct op_call *call, const struct op_history *request);
