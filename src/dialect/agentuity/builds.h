/* A snapshot that is being made of an archive: a sandbox with a note in its metadata. */
#pragma once

#include "dialect/agentuity/routes.h"

#define BUILD_LIFE_MS (60 * 60 * 1000)

/* The sandbox that {snapshot} names as a build; NULL: none, or no build. */
struct sandbox *build_in_path(struct http_request *req);
/* What it was begun with: name, tag, description; NULL: it is none. The tree is the caller's. */
cJSON *build_of(const struct sandbox *s);
void build_respond_missing(struct http_request *req);
