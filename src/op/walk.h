/*
 * Operations that tell what a walk over a disk finds (box/disk/comparison.h). The walk stands still
 * while the caller has paused, and ends with the operation.
 */
#pragma once

#include "box/disk/comparison.h"
#include "op/op_core.h"

struct walk_op {
	struct op op;
	struct comparison *comparison; /* NULL: none is under way */
	/* Begins it, at the first resume. Negative: *e, and the reason if it is not OP_ERROR. */
	int (*begin)(struct walk_op *w, enum op_reason *reason, struct error *e);
	bool begun, finished, truncated;
};

/* For struct op_type. */
void op_walk_resume(struct op *op);
void walk_release(struct op *op, enum op_end end);

/* Emits; false: the operation is gone. */
bool walk_emit(struct walk_op *w, const struct op_event *event);
/* Takes the bytes, and emits them unless there are none. */
bool walk_emit_bytes(struct walk_op *w, struct buf *bytes);
/* The walk is over: tells OP_DONE, now or when the caller listens again, or OP_FAILED. */
void op_walk_finish(struct walk_op *w, bool truncated, const struct error *e);
