#pragma once

#include "api/files.h"
#include "answer/content.h"

/* The query's offset and length, or the header Range. */
int files_parse_range(struct http_request *req, struct byte_range *ret, struct error *e);
void files_read(struct http_request *req, const struct files_actor *place, const char *path,
	const struct byte_range *range);
