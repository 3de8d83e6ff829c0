/* Shared by create, get, list and other calls on sandboxes. */
#pragma once

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "bunker.h"
#include "client/list.h"

/* "/v1/sandboxes/ID" and what follows it. */
void client_append_sandbox_path(struct buf *target, const char *id, const char *rest);
/* Takes the tree, also when it fails. */
int client_decode_sandbox(cJSON *tree, struct bunker_sandbox *ret, struct bunker_error *e);

extern const struct list_kind client_sandbox_list;
