/* File work in a sandbox or in a volume. */
#pragma once

#include "op/op.h"

/* Everything that wire/record.h lists, in a sandbox as a user of it, or in a volume as root. */
struct op_files {
	const char *user; /* NULL: the sandbox's */
	/*
	 * With root's rights, for `user`: what is made belongs to that user, and paths that are not
	 * absolute begin in its home, or where the sandbox begins if `user` is NULL. The request's
	 * own owner and cwd do not count. In volumes all work is root's.
	 */
	bool as_root;
	struct file_request request;
	/* OP_ITEM_DATA is compressed; a FILE_WRITE then takes one file. */
	enum op_compression {
		OP_PLAIN,
		OP_GZIP,
		OP_ANY_COMPRESSION /* gzip, zstd or none, by its first bytes */
	} compression;
};
struct op *op_files(const struct op_call *call, const struct op_files *request);
