/* The life cycle of a sandbox. */
#pragma once

#include "op/op.h"

/* OP_DONE with the sandbox as it is then. */
struct op *op_pause(const struct op_call *call, bool keep_memory);
struct op *op_resume_sandbox(const struct op_call *call, bool keep_memory);
