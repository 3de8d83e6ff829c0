/* Checkpoints of the call's sandbox, named by id or name. What changes something is carried
 * through. */
#pragma once

#include "op/op.h"

/* OP_DONE with the checkpoint and frozen_us. */
struct op *op_checkpoint_create(const struct op_call *call, const char *name);
/* OP_ROW with each, in the order of their creation. */
struct op *op_checkpoint_list(const struct op_call *call);
/* OP_DONE with the checkpoint. */
struct op *op_checkpoint_get(const struct op_call *call, const char *checkpoint);
/* OP_DONE with the sandbox as it is then; its processes have ended. */
struct op *op_checkpoint_restore(const struct op_call *call, const char *checkpoint);
struct op *op_checkpoint_delete(const struct op_call *call, const char *checkpoint);
/* Throws away what was changed since the sandbox was made. OP_DONE with the sandbox. */
struct op *op_discard(const struct op_call *call);
