/* filesystem.Filesystem: what its files share. */
#pragma once

#include "dialect/e2b/rpc.h"
#include "dialect/e2b/entry.h"
#include "dialect/e2b/envd.h"
#include "op/files.h"

#define FILESYSTEM_PATH_MAX 4095

/* A request about one path, by envd's rules. The texts are those of req and path. */
int filesystem_request(struct http_request *req, const char *path, enum file_op op, unsigned flags,
	struct op_files *ret, struct error *e);
/* The core's error in envd's words. */
void filesystem_explain(const char *path, const struct error *why, struct error *e);

extern const struct route_table filesystem_table, filesystem_list_table, filesystem_watch_table,
	filesystem_watcher_table;
