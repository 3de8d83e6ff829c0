/* A directory as an archive, and an archive into a directory. Neither is ever held: both flow. */
#pragma once

#include "op/op.h"

struct op_pack {
	const char *user; /* NULL: the sandbox's */
	const char *path, *cwd;
	enum archive_coding coding;
};
/* OP_DATA for each piece, then OP_DONE. */
struct op *op_pack(const struct op_call *call, const struct op_pack *request);

struct op_unpack {
	const char *user; /* NULL: the sandbox's */
	const char *path, *cwd;
	unsigned flags; /* FILE_PARENTS, FILE_OWNERS; FILE_ZIP: it is a zip archive, else tar */
};
/*
 * Takes OP_ITEM_DATA and OP_ITEM_END. A tar archive may be compressed by gzip or zstd, which its
 * first bytes tell. OP_DONE with `result`.
 */
struct op *op_unpack(const struct op_call *call, const struct op_unpack *request);
