/* Snapshots, as several files here see them. */
#pragma once

#include "box/disk/snapshot.h"
#include "dialect/agentuity/routes.h"

/* By id with or without its prefix, name, name:tag, or a tag that only one has; NULL: none. */
struct snapshot *agentuity_find_snapshot(const struct http_request *req, const char *ref);
/* SNAPSHOT_NOT_FOUND, which the SDK has a class for. */
void agentuity_respond_no_snapshot(struct http_request *req, const char *ref);
void agentuity_respond_snapshot(struct http_request *req, int status, const struct snapshot *s);
