/* Secrets of the caller's tenant. Values go in, and never come out. */
#pragma once

#include "op/op.h"

struct op_secret {
	const char *name;
	char *value; /* of a put, checked by secret_model; overwritten as soon as it is sealed */
};
/* OP_DONE: secret. It is in force for the next request of every sandbox. Carried through. */
struct op *op_secret_put(const struct op_call *call, const struct op_secret *request);
/* OP_ROW: secret, each, by name. */
struct op *op_secret_list(const struct op_call *call);
/* OP_DONE: secret. */
struct op *op_secret_get(const struct op_call *call, const struct op_secret *request);
/* Refused while a sandbox's rule names it. Carried through. */
struct op *op_secret_delete(const struct op_call *call, const struct op_secret *request);
