/* Volumes as a whole; what is in them is op/files.h's. The call's `volume` is an id or a name. */
#pragma once

#include "op/op.h"

struct op_volume_create {
	const char *name;
	int64_t limit; /* bytes; 0: the default of a sandbox's disk */
};
/* OP_DONE with the volume. Carried through. */
struct op *op_volume_create(const struct op_call *call, const struct op_volume_create *request);
/* OP_ROW with each, in the order of their creation. */
struct op *op_volume_list(const struct op_call *call);
/* OP_DONE with the volume. */
struct op *op_volume_get(const struct op_call *call);
/* Fails with in_use while a sandbox has it. Carried through. */
struct op *op_volume_delete(const struct op_call *call);
