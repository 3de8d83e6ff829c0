/* Archives of directories, up and down. */
#pragma once

#include "dialect/agentuity/routes.h"
#include "handler/archives.h"

/* The request's body, a tar archive, compressed or not, into a directory of the sandbox. */
void archive_unpack(
	struct http_request *req, struct sandbox *s, const char *path, archive_taken_fn *taken);
