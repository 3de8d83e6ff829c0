/* /files, down and up: what its two files share. */
#pragma once

#include "dialect/e2b/entry.h"
#include "dialect/e2b/envd.h"

/* As whom: the query's username, else the one that envd_user finds. */
int files_user(struct http_request *req, const char **ret, struct error *e);
/* The core's error in envd's words. */
void files_explain(const char *path, const char *user, const struct error *why, struct error *e);

extern const struct e2b_table files_download_table, files_upload_table;
