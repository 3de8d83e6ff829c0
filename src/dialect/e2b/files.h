/* /files, down and up: what its two files share. */
#pragma once

#include "dialect/e2b/entry.h"
#include "dialect/e2b/envd.h"

/* For whom: the query's username counts before the header. */
int files_actor(struct http_request *req, struct envd_actor *ret, struct error *e);
/* The core's error in envd's words. */
void files_explain(const char *path, const char *user, const struct error *why, struct error *e);

extern const struct e2b_table files_download_table, files_upload_table;
