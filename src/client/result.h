/* Shared by exec, attach and processes. */
#pragma once

#include <cjson/cJSON.h>

#include "base/buf.h"
#include "bunker.h"

/* "SIGKILL", "KILL" or 9. */
int client_decode_signal(const cJSON *value);
/* An exit event becomes the result's JSON: what only the stream needed goes. */
void client_decode_result(cJSON *event, struct bunker_result *result);
int client_decode_base64(struct buf *out, const char *text, struct bunker_error *e);
