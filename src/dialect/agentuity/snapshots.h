/* Snapshots, as several files here see them. */
#pragma once

#include "dialect/agentuity/routes.h"
#include "model/snapshot.h"

void agentuity_put_snapshot(struct json_writer *w, const struct snapshot_view *view);
/* SNAPSHOT_NOT_FOUND, which the SDK has a class for. */
void agentuity_put_no_snapshot(struct http_request *req, struct buf *out, const char *ref);
