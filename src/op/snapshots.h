/* Snapshots, and forks, which copy a disk as they do. A snapshot is named as in a create: by its
 * id, "name", "name:tag", or a tag that only one has. */
#pragma once

#include "op/op.h"

/* Snapshots the call's sandbox. OP_DONE has the snapshot and frozen_us. Carried through. */
struct op *op_snapshot_create(const struct op_call *call, const struct snapshot_spec *spec);
/* OP_ROW with each; OP_DONE with how many there are (total), and whether some follow (more). */
struct op *op_snapshot_list(const struct op_call *call, const struct snapshot_filter *filter);
/* OP_DONE with the snapshot. */
struct op *op_snapshot_get(const struct op_call *call, const char *snapshot);
/* OP_ROW with the snapshot and each it was made from, deleted ones included, at most `limit`. */
struct op *op_snapshot_lineage(const struct op_call *call, const char *snapshot, int64_t limit);
/* OP_DONE with the snapshot as it is then. A tag of NULL takes it off. Carried through. */
struct op *op_snapshot_retag(const struct op_call *call, const char *snapshot, const char *tag);
/* Fails with in_use while a sandbox stands on it. Carried through. */
struct op *op_snapshot_delete(const struct op_call *call, const char *snapshot);

struct op_become_snapshot {
	struct snapshot_spec spec;
	const char *const *dependencies, *const *packages; /* that it is to have; NULL: none */
	const char *home; /* with some: the directory that is kept of the sandbox */
	int64_t lease_ms; /* of the sandbox that is made for them */
};
/*
 * The call's sandbox becomes a snapshot and is destroyed; if that fails, it stays. OP_DONE has the
 * snapshot; OP_SANDBOX_ENDED: the sandbox ended on the way. Carried through.
 */
struct op *op_become_snapshot(const struct op_call *call, const struct op_become_snapshot *request);

struct op_fork {
	unsigned count;
	int64_t lease_ms; /* that each gets; 0: that of the original */
};
/*
 * New sandboxes with a copy of the call's sandbox's disk, all or none. OP_ROW with each, without a
 * sandbox if it has ended already; OP_DONE with frozen_us. If the caller has left they are
 * destroyed: no client knows their ids.
 */
struct op *op_fork(const struct op_call *call, const struct op_fork *request);
