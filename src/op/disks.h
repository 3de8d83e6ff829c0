/*
 * Exports of whole disks, at the pace of the reader, and imports of such files. None of them
 * outlives its caller.
 */
#pragma once

#include "op/op.h"

#define INVENTORIES_MAX 4 /* at once, of all tenants: others need the keeper, too */

/*
 * A diff of the call's sandbox with its origin, or with a checkpoint or snapshot. DIFF_RECORDS:
 * OP_ROW with each disk_change; the other forms: OP_DATA. OP_DONE with `truncated`.
 */
struct op_diff {
	const char *checkpoint, *snapshot; /* NULL: not given; at most one */
	enum diff_form form;
};
struct op *op_diff(const struct op_call *call, const struct op_diff *request);

/* A snapshot as a file (image/bundle.h). OP_ROW with the snapshot, then OP_DATA. */
struct op *op_bundle_export(const struct op_call *call, const char *snapshot);
/*
 * A snapshot made of such a file, whose bytes are put as OP_ITEM_DATA. What the spec gives counts
 * more than what the file says. OP_DONE with the snapshot.
 */
struct op *op_bundle_import(const struct op_call *call, const struct snapshot_spec *spec);

/* The call's sandbox, below a path of it, or a snapshot, as one JSON object (image/portable.h).
 * OP_DATA. */
struct op *op_portable_export(const struct op_call *call, const char *root);
struct op *op_portable_export_snapshot(const struct op_call *call, const char *snapshot);
/* A sandbox made of such an object, put as OP_ITEM_DATA. OP_DONE with the sandbox. */
struct op *op_portable_import(const struct op_call *call, const struct sandbox_spec *spec);

/*
 * Measures the disks of the tenant, or those of the call's sandbox and its checkpoints: OP_ROW with
 * each disk_usage, as it is found out, and OP_IDLE behind it. Data that two disks share is counted
 * in both.
 */
struct op *op_inventory(const struct op_call *call);
