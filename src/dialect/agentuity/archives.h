/* Archives of directories, up and down. */
#pragma once

#include "dialect/agentuity/routes.h"

/*
 * Begins to take the request's body, a tar archive, compressed or not, into a directory of the
 * sandbox that the answer's call names, and runs the answer.
 */
void archive_unpack(struct answer *a, const char *path);
