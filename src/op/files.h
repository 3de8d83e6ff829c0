/* File work in a sandbox or in a volume. */
#pragma once

#include "op/op.h"

/* Everything that wire/record.h lists, in a sandbox as a user of it, or in a volume as root. */
struct op_files {
	const char *user; /* NULL: the sandbox's */
	struct file_request request;
};
struct op *op_files(const struct op_call *call, const struct op_files *request);
