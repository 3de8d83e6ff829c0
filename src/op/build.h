/* Builds: made, started, followed, cancelled; and the archives that their COPY takes files from. */
#pragma once

#include "model/build.h"
#include "op/op.h"

/*
 * OP_DONE with the build as soon as it is stored; it goes on by itself. What is wrong with the spec
 * is a failure of the operation, and no build is left. spec NULL: it is made, and started later.
 */
struct op *op_build_create(
	const struct op_call *call, const struct build_new *what, const struct build_spec *spec);

/* Names a build. A build of another template is not found. */
struct op_build_ref {
	const char *build;         /* an id */
	const char *template_name; /* or its id; NULL: of any */
};

struct op *op_build_start(
	const struct op_call *call, const struct op_build_ref *ref, const struct build_spec *spec);
/* OP_DONE with the build. */
struct op *op_build_get(const struct op_call *call, const struct op_build_ref *ref);
struct op *op_build_cancel(const struct op_call *call, const struct op_build_ref *ref);

struct op_build_log {
	struct op_build_ref ref;
	uint64_t from; /* the number of the first entry that is told */
	size_t limit;  /* of entries, unless it follows */
	bool follow;   /* to the end of the build */
};
/* OP_ROW with each entry (`log`), OP_DONE with the build. */
struct op *op_build_log(const struct op_call *call, const struct op_build_log *request);

/*
 * A build from an archive, which is the operation's input. OP_DONE with the build when it is ready.
 * A caller that leaves before that cancels it.
 */
struct op *op_build_import(
	const struct op_call *call, const struct build_new *what, const struct import_spec *spec);

/* ---- archives for COPY ---- */

struct op_build_files {
	const char *hash;          /* by which clients know them */
	const char *template_name; /* that has to exist; NULL: any */
	bool verify;               /* to be stored: the hash is the SHA-256 of the bytes */
	int64_t announced;         /* to be stored: how many bytes will come; -1: unknown */
};
/* OP_FAILED with ERROR_NOT_FOUND if they are not here. */
struct op *op_build_files_find(const struct op_call *call, const struct op_build_files *request);
/* The archive is the operation's input. */
struct op *op_build_files_store(const struct op_call *call, const struct op_build_files *request);
