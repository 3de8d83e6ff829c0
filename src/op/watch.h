/* Events of a directory: told as they happen, or collected until a caller asks. */
#pragma once

#include "op/op.h"

/*
 * OP_READY, then OP_NOTICE for each, OP_IDLE when there is nothing new, and OP_DONE when the
 * directory is gone. With `entries`, what was created, written, changed or renamed is looked up
 * first: if it is still there, OP_ENTRY and its OP_ATTRIBUTEs come right before its notice.
 */
struct op *op_watch(const struct op_call *call, const struct watch_spec *spec);

/* OP_DONE with `id`. A watcher lives as long as its sandbox, or until it is removed. */
struct op *op_watcher_create(const struct op_call *call, const struct watch_spec *spec);

struct op_watcher {
	const char *id;
};
/* As op_watch, of what was collected since the last time; then OP_DONE. */
struct op *op_watcher_take(const struct op_call *call, const struct op_watcher *watcher);
struct op *op_watcher_remove(const struct op_call *call, const struct op_watcher *watcher);
