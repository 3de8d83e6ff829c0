/* Snapshots, as several files here see them. */
#pragma once

#include "dialect/agentuity/aliases.h"
#include "model/snapshot.h"

/* {"success":true,"data": the snapshot} */
extern const struct answer_records agentuity_snapshot_records;
/* SNAPSHOT_NOT_FOUND, which the SDK has a class for. */
void agentuity_put_no_snapshot(struct http_request *req, struct buf *out, const char *ref);
