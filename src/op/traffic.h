/* What a sandbox used of the internet. */
#pragma once

#include "model/destination.h"
#include "op/op.h"

/* OP_ROW with a struct destination_view each, the one that was used last first. */
struct op *op_destinations(const struct op_call *call);
/*
 * The same, the one that was used last at the end; then, as they change, those that did, whole.
 * OP_DONE when the sandbox has ended.
 */
struct op *op_destinations_follow(const struct op_call *call);
