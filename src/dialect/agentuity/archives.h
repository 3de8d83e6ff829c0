/* Archives of directories, up and down. */
#pragma once

#include "dialect/agentuity/routes.h"

/* The request's body, a tar archive, gzipped or not, into a directory of the sandbox. */
void archive_unpack(struct http_request *req, struct sandbox *s, const char *path,
	void (*respond)(struct http_request *req));
